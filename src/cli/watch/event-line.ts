/** One event of a run as one line, for pipes, CI logs and `capstan events`. */
import type { RunEvent } from '../../contracts/event.ts';
import type { Json } from '../../contracts/primitives.ts';
import { formatDuration, formatUsd } from '../render/amounts.ts';
import type { Style } from '../render/style.ts';

function isRecord(value: Json | undefined): value is Readonly<Record<string, Json>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function describeValue(name: string, value: Json): string | undefined {
  if (name === 'error' && isRecord(value)) return `${value.code}: ${value.message}`;
  if (name === 'cost_usd' && typeof value === 'number') return formatUsd(value);
  if (name === 'duration_ms' && typeof value === 'number') return formatDuration(value);
  if (typeof value === 'number' && name.endsWith('_usd')) return `${name.slice(0, -4)}=${formatUsd(value)}`;
  if (typeof value === 'number' && name.endsWith('_ms'))
    return `${name.slice(0, -3)}=${formatDuration(value)}`;
  if (typeof value === 'string' && /\s/.test(value)) return `${name}="${value}"`;
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? `${name}=${value}`
    : undefined;
}

function describeData(data: Json): string {
  return isRecord(data)
    ? Object.entries(data)
        .map(([name, value]) => describeValue(name, value))
        .filter((text) => text !== undefined)
        .join(' ')
    : '';
}

function paintType(type: RunEvent['type'], style: Style): string {
  const padded = type.padEnd(14);
  if (type.endsWith('succeeded')) return style.green(padded);
  if (type.endsWith('failed')) return style.red(padded);
  return /retrying|cancel/.test(type) ? style.yellow(padded) : padded;
}

/** `10:57:27.120Z step.routed  trim #2  endpoint=http://…`: time in UTC, attempt after the step. */
export function formatEvent(event: RunEvent, style: Style): string {
  const time = `${new Date(event.at).toISOString().slice(11, 23)}Z`;
  const attempt = event.attempt === undefined ? '' : ` #${event.attempt}`;
  const item = event.item === undefined ? '' : `[${event.item}]`;
  const step = event.step_id === undefined ? [] : [`${event.step_id}${item}${attempt}`];
  return [style.dim(time), paintType(event.type, style), ...step, describeData(event.data)]
    .join('  ')
    .trimEnd();
}
