/**
 * Why a call went where it went: one sentence, and a table of who was considered; and how the steps of a run are
 * carried out.
 */
import type { Candidate, Decision, RouteDispatch } from '../../contracts/decision.ts';
import { formatDuration, formatUsd } from './formats.ts';
import { type Column, renderTable, type Style, type TableLayout } from './print.ts';

const columns: readonly Column[] = [
  { header: 'CANDIDATE', shrinks: true },
  { header: 'TIER', align: 'right' },
  { header: 'COST', align: 'right' },
  { header: 'WAIT', align: 'right' },
  { header: 'SCORE', align: 'right' },
  { header: 'VERDICT' },
];

function renderCandidate(candidate: Candidate, style: Style): string[] {
  const { endpoint, tier, cost_usd, wait_ms, score, verdict } = candidate;
  return [
    endpoint,
    tier === null ? '' : String(tier),
    cost_usd === null ? '' : formatUsd(cost_usd),
    wait_ms === null ? '' : formatDuration(wait_ms),
    score === null ? '' : String(Number(score.toPrecision(3))),
    verdict === 'chosen' ? style.green(verdict) : verdict,
  ];
}

export function renderDecision({ reason, candidates }: Decision, layout: TableLayout): string[] {
  const rows = candidates.map((candidate) => renderCandidate(candidate, layout.style));
  return [`why: ${reason}`, ...(rows.length === 0 ? [] : renderTable(columns, rows, layout))];
}

/** `reserved $0.02, settled $0.01`; a call that is under way has settled nothing. */
export function renderMoney({ reserved_usd, settled_usd }: Decision): string {
  return `reserved ${formatUsd(reserved_usd)}, ${settled_usd === null ? 'not settled yet' : `settled ${formatUsd(settled_usd)}`}`;
}

const mostLines = 5;

type ShownRoute = Pick<RouteDispatch, 'capability' | 'capability_version' | 'tags' | 'how' | 'message'>;

function describe({ capability, capability_version, tags = [], how, message }: ShownRoute): string {
  return `${[capability, capability_version, ...tags].filter(Boolean).join(' ')} ${how}: ${message}`;
}

/** How the steps that ask for the same instances are carried out, and why: a line each, not many. */
export function renderDispatch(routes: readonly ShownRoute[]): string[] {
  const lines = [...new Set(routes.map(describe))];
  const rest = lines.length - mostLines;
  return rest > 0 ? [...lines.slice(0, mostLines), `… ${rest} more`] : lines;
}
