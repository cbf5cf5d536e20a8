/** How the steps that ask for the same instances are carried out, and why: a line each, not many. */
import type { RouteDispatch } from '../../contracts/dispatch.ts';

const mostLines = 5;

type ShownRoute = Pick<RouteDispatch, 'capability' | 'capability_version' | 'tags' | 'how' | 'message'>;

function describe({ capability, capability_version, tags = [], how, message }: ShownRoute): string {
  return `${[capability, capability_version, ...tags].filter(Boolean).join(' ')} ${how}: ${message}`;
}

export function renderDispatch(routes: readonly ShownRoute[]): string[] {
  const lines = [...new Set(routes.map(describe))];
  const rest = lines.length - mostLines;
  return rest > 0 ? [...lines.slice(0, mostLines), `… ${rest} more`] : lines;
}
