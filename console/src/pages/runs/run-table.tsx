import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import type { RunSummary } from '../../../../src/contracts/run.ts';
import { conditionOfRun } from '../../../../src/core/run/condition.ts';
import { Ago } from '../../shared/ago.tsx';
import { formatDuration, formatUsd } from '../../shared/format.ts';
import { tableClass } from '../../shared/parts.tsx';
import { ConditionMark } from '../../shared/state-mark.tsx';
import { useNow } from '../../shared/use-now.ts';
import { type FollowedRun, followedBy, progressOf } from './model.ts';
import { ProgressBar } from './progress-bar.tsx';

export interface RunTableProps {
  readonly runs: readonly RunSummary[];
  readonly chosen?: ReadonlySet<string>;
  readonly onChoose?: (chosen: ReadonlySet<string>) => void;
}

function toggled(chosen: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(chosen);
  if (!next.delete(id)) next.add(id);
  return next;
}

export function RunTable({ runs, chosen = new Set(), onChoose }: RunTableProps): ReactElement {
  const isAll = runs.length > 0 && runs.every(({ run_id }) => chosen.has(run_id));
  return (
    <section className="scrolls @container" tabIndex={0} aria-label="Runs">
      <table className={tableClass}>
        <thead>
          <tr>
            {onChoose === undefined ? null : (
              <th className="w-8 max-sm:hidden">
                <input
                  type="checkbox"
                  aria-label="Choose all on this page"
                  checked={isAll}
                  onChange={() => onChoose(isAll ? new Set() : new Set(runs.map(({ run_id }) => run_id)))}
                />
              </th>
            )}
            <th>State</th>
            <th>Pipeline</th>
            <th className="@max-3xl:hidden">Run</th>
            <th className="@max-3xl:hidden">Steps</th>
            <th className="text-right!">Took</th>
            <th className="text-right!">Cost</th>
            <th className="text-right! max-sm:hidden">Started</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <RunRow
              key={run.run_id}
              run={run}
              isChosen={chosen.has(run.run_id)}
              {...(onChoose === undefined ? {} : { onChoose: () => onChoose(toggled(chosen, run.run_id)) })}
            />
          ))}
        </tbody>
      </table>
    </section>
  );
}

interface RunRowProps {
  readonly run: RunSummary;
  readonly isChosen: boolean;
  readonly onChoose?: () => void;
}

function RunRow({ run, isChosen, onChoose }: RunRowProps): ReactElement {
  const condition = conditionOfRun(run);
  const followed = followedBy(run);
  const progress = progressOf(run.step_counts);
  return (
    <tr className={isChosen ? 'bg-accent-soft' : 'hover:bg-sunken/60'}>
      {onChoose === undefined ? null : (
        <td className="max-sm:hidden">
          <input type="checkbox" aria-label={`Choose ${run.run_id}`} checked={isChosen} onChange={onChoose} />
        </td>
      )}
      <td>
        <ConditionMark condition={condition} />
        {condition.detail === '' || condition.kind === 'running' ? null : (
          <div className="max-w-28 truncate text-xs text-muted sm:max-w-64" title={condition.detail}>
            {condition.detail}
          </div>
        )}
        {followed === null ? null : <Followed followed={followed} />}
      </td>
      <td>
        <Link
          to="/runs/$runId"
          params={{ runId: run.run_id }}
          className="font-medium text-text hover:text-accent hover:underline"
        >
          {run.pipeline}
        </Link>
        <span className="figure ml-1.5 text-xs text-muted">{run.version}</span>
      </td>
      <td className="whitespace-nowrap font-mono text-xs text-muted @max-3xl:hidden" title={run.run_id}>
        …{run.run_id.slice(-8)}
      </td>
      <td className="@max-3xl:hidden">{progress === null ? null : <ProgressBar progress={progress} />}</td>
      <td className="figure whitespace-nowrap text-right!">
        <Took run={run} />
      </td>
      <td className="figure text-right!">
        {formatUsd(run.cost_usd)}
        {run.reserved_usd === 0 ? null : (
          <span className="block text-xs text-muted">+{formatUsd(run.reserved_usd)} reserved</span>
        )}
      </td>
      <td className="text-right! text-muted max-sm:hidden">
        <Ago at={run.created_at} />
      </td>
    </tr>
  );
}

function Took({ run }: { readonly run: RunSummary }): ReactElement {
  const now = useNow();
  if (run.started_at === null) return <span className="text-muted">–</span>;
  const end = run.finished_at === null ? now : Date.parse(run.finished_at);
  return <>{formatDuration(end - Date.parse(run.started_at))}</>;
}

function Followed({
  followed: { text, review, run },
}: {
  readonly followed: FollowedRun;
}): ReactElement | null {
  const look = 'block text-xs text-accent hover:underline';
  if (review !== undefined)
    return (
      <Link to="/reviews/$reviewId" params={{ reviewId: review }} className={look}>
        {text}
      </Link>
    );
  if (run === undefined) return null;
  return (
    <Link to="/runs/$runId" params={{ runId: run }} className={look}>
      {text}
    </Link>
  );
}
