/**
 * The explanation of a routing decision: one sentence, and a table of candidates; and how the steps of a run are
 * dispatched.
 */
import type { Candidate, Decision, RouteDispatch } from '@capstan/core/contracts/decision';
import { describeGrowth } from '@capstan/core/money/held-words';
import { formatDuration, formatUsd } from './formats.ts';
import { type Columns, renderRows, type TableLayout } from './print.ts';

const worstCase = 'AT MOST';
const load = 'LOAD';

function describeLoad({ resident, load_ms }: Candidate): string {
  if (resident === undefined) return '';
  if (resident) return 'loaded';
  return load_ms === undefined ? 'unknown' : formatDuration(load_ms);
}

const candidateTable: Columns<Candidate, TableLayout> = [
  ['CANDIDATE', 'endpoint', 'shrinks'],
  ['TIER', 'tier', 'right'],
  ['COST', ({ cost_usd }) => (cost_usd === null ? '' : formatUsd(cost_usd)), 'right'],
  [worstCase, ({ worst_case_usd: most }) => (most === undefined ? '' : formatUsd(most)), 'right'],
  [load, describeLoad, 'right'],
  ['WAIT', ({ wait_ms }) => (wait_ms === null ? '' : formatDuration(wait_ms)), 'right'],
  ['SCORE', ({ score }) => (score === null ? '' : String(Number(score.toPrecision(3)))), 'right'],
  ['VERDICT', ({ verdict }, { style }) => (verdict === 'chosen' ? style.green(verdict) : verdict)],
];

export function renderDecision({ reason, candidates }: Decision, layout: TableLayout): string[] {
  const hasWorstCase = candidates.some(({ worst_case_usd }) => worst_case_usd !== undefined);
  const hasKey = candidates.some(({ resident }) => resident !== undefined);
  const hidden = [hasWorstCase ? '' : worstCase, hasKey ? '' : load];
  const table = candidateTable.filter(([header]) => !hidden.includes(header));
  return [`why: ${reason}`, ...(candidates.length === 0 ? [] : renderRows(table, candidates, layout))];
}

/**
 * `reserved $0.02, settled $0.01`; a call in flight has settled nothing. `reserved $0.001, grown to $0.004 in 3 pieces,
 * settled $0.004; stopped, because its budgets had no more room`.
 */
export function renderMoney(decision: Decision): string {
  const { reserved_usd, settled_usd, stopped } = decision;
  const parts = [
    `reserved ${formatUsd(reserved_usd)}`,
    describeGrowth(decision),
    settled_usd === null ? 'not settled yet' : `settled ${formatUsd(settled_usd)}`,
  ];
  const end = stopped === undefined ? '' : '; stopped, because its budgets had no more room';
  return `${parts.filter((part) => part !== null).join(', ')}${end}`;
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
