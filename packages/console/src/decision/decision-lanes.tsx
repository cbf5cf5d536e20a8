import type { Candidate } from '@capstan/core/contracts/decision';
import type { ReactElement } from 'react';
import { formatDuration, formatUsd } from '../shared/format.ts';
import { Icon } from '../shared/icon.tsx';
import { describeVerdict, formatScore, shortEndpoint, toLanes } from './lanes-model.ts';

/**
 * Lanes by tier; the first lane wins, and in it the shortest bar: money and waiting, divided by the chance of success.
 */
export function DecisionLanes({ candidates }: { readonly candidates: readonly Candidate[] }): ReactElement {
  const { lanes, ruledOut, most } = toLanes(candidates);
  return (
    <div className="flex flex-col gap-3 text-sm">
      {lanes.map(({ tier, name, candidates: some }) => (
        <section key={tier}>
          <h3 className="mb-1 text-xs font-medium text-muted">
            Tier {tier}: {name}
          </h3>
          <ul className="flex flex-col gap-1.5">
            {some.map((candidate) => (
              <CandidateBar key={candidate.endpoint} candidate={candidate} most={most} />
            ))}
          </ul>
        </section>
      ))}
      {ruledOut.length === 0 ? null : (
        <section>
          <h3 className="mb-1 text-xs font-medium text-muted">Ruled out</h3>
          <ul className="flex flex-col gap-1">
            {ruledOut.map(({ endpoint, verdict }) => (
              <li key={endpoint} className="flex items-baseline gap-2">
                <Icon name="ban" size={12} className="translate-y-0.5 text-muted" />
                <span className="font-mono text-xs">{shortEndpoint(endpoint)}</span>
                <span className="text-muted">{describeVerdict(verdict)}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
      {lanes.length === 0 ? null : (
        <p className="text-xs text-muted">
          In a tier, the lowest score wins: money and waiting, divided by the chance of success.
        </p>
      )}
      {candidates.length === 0 ? <p className="text-muted">No instance is registered.</p> : null}
    </div>
  );
}

const scoreTitle =
  'It compares candidates and is no cost: the money, and the time until the end as money, divided by the chance of success';

/** Of a call that needs something loaded. */
function describeLoad({ resident, load_ms }: Candidate): string {
  if (resident === undefined) return '';
  if (resident) return ' · has it loaded';
  return load_ms === undefined ? ' · must load it' : ` · must load it, ${formatDuration(load_ms)}`;
}

function CandidateBar({
  candidate,
  most,
}: {
  readonly candidate: Candidate;
  readonly most: number;
}): ReactElement {
  const { endpoint, score, cost_usd, wait_ms, verdict, worst_case_usd, worst_case_fault } = candidate;
  const isChosen = verdict === 'chosen';
  const share = Math.max(1.5, (100 * (score ?? 0)) / most);
  return (
    <li
      className={`rounded-md border px-2.5 py-1.5 ${isChosen ? 'border-accent bg-accent-soft' : 'border-line'}`}
    >
      <div className="flex items-baseline justify-between gap-2">
        <span className="min-w-0 truncate font-mono text-xs font-medium">{shortEndpoint(endpoint)}</span>
        {score === null ? null : (
          <span className="figure shrink-0 text-xs text-muted" title={scoreTitle}>
            score {formatScore(score)}
          </span>
        )}
      </div>
      <div className="my-1 h-1.5 rounded-full bg-quiet-soft">
        <div
          className={`h-full rounded-full ${isChosen ? 'bg-accent' : 'bg-line-strong'}`}
          style={{ width: `${share}%` }}
        />
      </div>
      <p className="figure text-xs text-muted">
        {describeVerdict(verdict)}
        {cost_usd === null ? '' : ` · costs ${formatUsd(cost_usd)}`}
        {worst_case_usd === undefined ? '' : ` · at most ${formatUsd(worst_case_usd)}`}
        {wait_ms === null ? '' : ` · ends in ${formatDuration(wait_ms)}`}
        {describeLoad(candidate)}
      </p>
      {worst_case_fault === undefined ? null : (
        <p className="text-xs text-waiting">Its worst case does not count: {worst_case_fault}</p>
      )}
    </li>
  );
}
