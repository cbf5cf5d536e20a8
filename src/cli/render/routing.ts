/**
 * The explanation of a routing decision: one sentence, and a table of candidates; and how the steps of a run are
 * dispatched.
 */
import type { Candidate, Decision, RouteDispatch } from '@capstan/core/contracts/decision';
import { formatDuration, formatUsd } from './formats.ts';
import { type Columns, renderRows, type TableLayout } from './print.ts';

const worstCase = 'AT MOST';

const candidateTable: Columns<Candidate, TableLayout> = [
  ['CANDIDATE', 'endpoint', 'shrinks'],
  ['TIER', 'tier', 'right'],
  ['COST', ({ cost_usd }) => (cost_usd === null ? '' : formatUsd(cost_usd)), 'right'],
  [worstCase, ({ worst_case_usd: most }) => (most === undefined ? '' : formatUsd(most)), 'right'],
  ['WAIT', ({ wait_ms }) => (wait_ms === null ? '' : formatDuration(wait_ms)), 'right'],
  ['SCORE', ({ score }) => (score === null ? '' : String(Number(score.toPrecision(3)))), 'right'],
  ['VERDICT', ({ verdict }, { style }) => (verdict === 'chosen' ? style.green(verdict) : verdict)],
];

export function renderDecision({ reason, candidates }: Decision, layout: TableLayout): string[] {
  const hasWorstCase = candidates.some(({ worst_case_usd }) => worst_case_usd !== undefined);
  const table = candidateTable.filter(([header]) => hasWorstCase || header !== worstCase);
  return [`why: ${reason}`, ...(candidates.length === 0 ? [] : renderRows(table, candidates, layout))];
}

/** `reserved $0.02, settled $0.01`; a call in flight has settled nothing. */
export function renderMoney({ reserved_usd, settled_usd }: Decision): string {
  return `reserved ${formatUsd(reserved_usd)}, ${settled_usd === null ? 'not settled yet' : `settled ${formatUsd(settled_usd)}`}`;
}

const mostLines = 5;

type ShownRoute = Pick<RouteDispatch, 'capability' | 'capability_version' | 'tags' | 'how' | 'message'>;

function describe({ capability, capability_version, tags = [], how, message }: ShownRoute): string {
  return `${[capability, capability_version, ...tags].filter(Boolean).join(' ')} ${how}: ${message}`;
}

/** How steps with the same route are dispatched, and why: one line per route. */
export function renderDispatch(routes: readonly ShownRoute[]): string[] {
  const lines = [...new Set(routes.map(describe))];
  const rest = lines.length - mostLines;
  return rest > 0 ? [...lines.slice(0, mostLines), `… ${rest} more`] : lines;
}
