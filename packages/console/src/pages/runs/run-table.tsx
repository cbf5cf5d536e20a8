import type { RunSummary } from '@capstan/core/contracts/run';
import { conditionOfRun } from '@capstan/core/run/run-status';
import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { Ago } from '../../shared/ago.tsx';
import { formatDuration, formatUsd } from '../../shared/format.ts';
import { linkClass, tableClass } from '../../shared/parts.tsx';
import { ConditionMark } from '../../shared/state-mark.tsx';
import { useNow } from '../../shared/use-now.ts';
import { type FollowedRun, followedBy, progressOf } from './model.ts';
import { ProgressBar } from './progress-bar.tsx';
import type { FurtherColumn } from './views.ts';

export interface RunTableProps {
  readonly runs: readonly RunSummary[];
  /** A compact table for a page with others: without ids and steps. */
  readonly isCompact?: boolean;
  readonly columns?: ReadonlySet<FurtherColumn>;
  readonly chosen?: ReadonlySet<string>;
  readonly onChoose?: (chosen: ReadonlySet<string>) => void;
}

function toggled(chosen: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(chosen);
  if (!next.delete(id)) next.add(id);
  return next;
}

export function RunTable({
  runs,
  isCompact = false,
  columns = new Set(),
  chosen = new Set(),
  onChoose,
}: RunTableProps): ReactElement {
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
            {isCompact ? null : (
              <>
                <th className="@max-3xl:hidden">Run</th>
                <th className="@max-3xl:hidden">Steps</th>
              </>
            )}
            {columns.has('labels') ? <th className="max-sm:hidden">Labels</th> : null}
            {columns.has('trigger') ? <th className="max-sm:hidden">Trigger</th> : null}
            <th className="text-right! max-sm:hidden">Took</th>
            <th className="text-right!">Cost</th>
            <th className="text-right! max-sm:hidden">Started</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <RunRow
              key={run.run_id}
              run={run}
              isCompact={isCompact}
              columns={columns}
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
  readonly isCompact: boolean;
  readonly columns: ReadonlySet<FurtherColumn>;
  readonly isChosen: boolean;
  readonly onChoose?: () => void;
}

function RunRow({ run, isCompact, columns, isChosen, onChoose }: RunRowProps): ReactElement {
  const condition = conditionOfRun(run);
  const followed = followedBy(run);
  return (
    <tr className={isChosen ? 'bg-accent-soft' : 'hover:bg-sunken/60'}>
      {onChoose === undefined ? null : (
        <td className="max-sm:hidden">
          <input type="checkbox" aria-label={`Choose ${run.run_id}`} checked={isChosen} onChange={onChoose} />
        </td>
      )}
      <td className="max-sm:[&>span]:whitespace-normal">
        <ConditionMark condition={condition} />
        {condition.detail === '' || condition.kind === 'running' ? null : (
          <div
            className={`max-w-28 truncate text-xs text-muted ${isCompact ? 'sm:max-w-44' : 'sm:max-w-64'}`}
            title={condition.detail}
          >
            {condition.detail}
          </div>
        )}
        {followed === null ? null : <Followed followed={followed} />}
        {run.superseded_by === undefined ? null : <RepeatedAs runId={run.superseded_by} />}
      </td>
      <td>
        <Link
          to="/runs/$runId"
          params={{ runId: run.run_id }}
          title={run.pipeline}
          className={`inline-block truncate align-bottom font-medium text-text hover:text-accent hover:underline max-sm:max-w-24 ${isCompact ? 'max-w-32' : 'max-w-64'}`}
        >
          {run.pipeline}
        </Link>
        {isCompact ? null : <span className="figure ml-1.5 text-xs text-muted">{run.version}</span>}
      </td>
      {isCompact ? null : <IdAndSteps run={run} />}
      {columns.has('labels') ? <Labels run={run} /> : null}
      {columns.has('trigger') ? <Trigger run={run} /> : null}
      <td className="figure whitespace-nowrap text-right! max-sm:hidden">
        <Took run={run} />
      </td>
      <td className="figure text-right!">
        {formatUsd(run.cost_usd)}
        <span className="block text-xs text-muted sm:hidden">
          <Took run={run} />
        </span>
        {run.reserved_usd === 0 ? null : (
          <span className="block text-xs text-muted" title="reserved">
            +{formatUsd(run.reserved_usd)} <span className="max-sm:hidden">reserved</span>
          </span>
        )}
      </td>
      <td className="text-right! text-muted max-sm:hidden">
        <Ago at={run.created_at} />
      </td>
    </tr>
  );
}

function RepeatedAs({ runId }: { readonly runId: string }): ReactElement {
  return (
    <Link
      to="/runs/$runId"
      params={{ runId }}
      className={`block whitespace-nowrap text-xs ${linkClass}`}
      title={runId}
    >
      Repeated as …{runId.slice(-8)}
    </Link>
  );
}

function IdAndSteps({ run: { run_id, step_counts } }: { readonly run: RunSummary }): ReactElement {
  const progress = progressOf(step_counts);
  return (
    <>
      <td className="whitespace-nowrap font-mono text-xs text-muted @max-3xl:hidden" title={run_id}>
        …{run_id.slice(-8)}
      </td>
      <td className="@max-3xl:hidden">{progress === null ? null : <ProgressBar progress={progress} />}</td>
    </>
  );
}

/** Each links to the runs with the same label. */
function Labels({ run: { labels } }: { readonly run: RunSummary }): ReactElement {
  return (
    <td className="max-sm:hidden">
      <span className="flex max-w-56 flex-wrap gap-1">
        {Object.entries(labels).map(([name, value]) => (
          <Link
            key={name}
            to="/runs"
            search={{ label: `${name}=${value}` }}
            title={`${name}=${value}`}
            className="max-w-full truncate rounded bg-sunken px-1.5 text-xs text-muted hover:text-accent"
          >
            {name}={value}
          </Link>
        ))}
      </span>
    </td>
  );
}

function Trigger({ run: { schedule_id, rerun_of, parent } }: { readonly run: RunSummary }): ReactElement {
  const from = rerun_of ?? parent?.run_id;
  return (
    <td className="whitespace-nowrap text-xs text-muted max-sm:hidden">
      {schedule_id === undefined ? null : (
        <Link to="/schedules" className={linkClass}>
          schedule
        </Link>
      )}
      {from === undefined ? null : (
        <Link to="/runs/$runId" params={{ runId: from }} className={linkClass} title={from}>
          {rerun_of === undefined ? 'parent run' : 'rerun'} …{from.slice(-8)}
        </Link>
      )}
      {schedule_id === undefined && from === undefined ? 'direct' : null}
    </td>
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
