import type { Run } from '@capstan/core/contracts/run';
import { conditionOfRun } from '@capstan/core/run/run-status';
import { Link } from '@tanstack/react-router';
import type { ReactElement, ReactNode } from 'react';
import { useServerAway } from '../../live/live.tsx';
import { Ago } from '../../shared/ago.tsx';
import { CopyButton } from '../../shared/copy-button.tsx';
import { formatDuration, formatUsd } from '../../shared/format.ts';
import { Icon } from '../../shared/icon.tsx';
import { linkClass } from '../../shared/parts.tsx';
import { ConditionMark } from '../../shared/state-mark.tsx';
import { useTitle } from '../../shared/title.ts';
import { ConditionBar } from './condition-bar.tsx';
import { RunControls } from './controls.tsx';
import { shareOfCeiling } from './model.ts';

export function RunHead({ run, isPast }: { readonly run: Run; readonly isPast: boolean }): ReactElement {
  const condition = conditionOfRun(run);
  const away = useServerAway();
  useTitle(`${run.pipeline} · ${condition.title}`);
  return (
    <header>
      <div className="flex flex-wrap items-start justify-between gap-3">
        <div className="min-w-0">
          <p className="text-xs text-muted">
            <Link to="/runs" className="hover:underline">
              Runs
            </Link>{' '}
            /{' '}
            <Link
              to="/pipelines/$name"
              params={{ name: run.pipeline }}
              search={{ version: run.version }}
              className="hover:underline"
            >
              {run.pipeline} {run.version}
            </Link>
          </p>
          <h1 className="mt-0.5 flex flex-wrap items-center gap-x-3 gap-y-1">
            {run.pipeline}
            <ConditionMark condition={condition} isFilled />
          </h1>
        </div>
        {isPast ? null : (
          <fieldset className="contents" disabled={away !== null} aria-label="Controls of the run">
            <RunControls run={run} condition={condition} />
          </fieldset>
        )}
      </div>
      <fieldset className="contents" disabled={away !== null} aria-label="Next steps">
        <ConditionBar run={run} condition={condition} isPast={isPast} />
      </fieldset>
      <RunFacts run={run} />
    </header>
  );
}

function RunFacts({ run }: { readonly run: Run }): ReactElement {
  const took =
    run.started_at === null || run.finished_at === null
      ? null
      : Date.parse(run.finished_at) - Date.parse(run.started_at);
  return (
    <div className="mt-3 flex flex-wrap items-center gap-x-6 gap-y-2 text-sm">
      {took === null ? null : <Fact name="took">{formatDuration(took)}</Fact>}
      <Fact name="started">
        <Ago at={run.started_at ?? run.created_at} />
      </Fact>
      <CostFact run={run} />
      <Fact name="priority">{run.priority}</Fact>
      {Object.entries(run.labels).map(([name, value]) => (
        <Link
          key={name}
          to="/runs"
          search={{ label: `${name}=${value}` }}
          className="rounded bg-quiet-soft px-1.5 text-xs text-muted hover:text-text"
        >
          {name}={value}
        </Link>
      ))}
      <span className="flex items-center gap-1 font-mono text-xs text-muted">
        {run.run_id}
        <CopyButton text={run.run_id} name="the run's id" />
        {run.links.temporal === undefined ? null : (
          <a
            href={run.links.temporal}
            target="_blank"
            rel="noreferrer"
            className={`${linkClass} ml-1 inline-flex items-center gap-1 font-sans`}
          >
            Temporal <Icon name="external-link" size={12} />
          </a>
        )}
      </span>
      {run.rerun_of === undefined ? null : (
        <Link
          to="/runs/$runId/compare/$otherId"
          params={{ runId: run.rerun_of, otherId: run.run_id }}
          className={linkClass}
        >
          Compare with original
        </Link>
      )}
      {run.superseded_by === undefined ? null : (
        <Link to="/runs/$runId" params={{ runId: run.superseded_by }} className={linkClass}>
          Repeated as …{run.superseded_by.slice(-8)}
        </Link>
      )}
      {run.parent === undefined ? null : (
        <Link
          to="/runs/$runId"
          params={{ runId: run.parent.run_id }}
          search={{ step: run.parent.step_id }}
          className={linkClass}
        >
          started by {run.parent.step_id}
        </Link>
      )}
    </div>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }): ReactElement {
  return (
    <span>
      <span className="text-muted">{name}</span> <span className="figure font-medium">{children}</span>
    </span>
  );
}

/** The spent, the reserved (hatched) and the remaining money of the ceiling. */
function CostFact({ run }: { readonly run: Run }): ReactElement {
  const shares = shareOfCeiling(run);
  const held = run.reserved_usd === 0 ? '' : `, ${formatUsd(run.reserved_usd)} reserved`;
  const of = run.budget_ceiling_usd === null ? '' : ` of ${formatUsd(run.budget_ceiling_usd)}`;
  return (
    <span className="inline-flex flex-wrap items-center gap-2">
      <span className="text-muted">cost</span>
      <Link to="/costs/ledger" search={{ run_id: run.run_id }} className="figure font-medium hover:underline">
        {formatUsd(run.cost_usd)}
        {of}
        {held}
      </Link>
      {shares === null ? null : (
        <span className="flex h-2 w-28 overflow-hidden rounded-full bg-quiet-soft" aria-hidden="true">
          <span className="bg-accent" style={{ width: `${shares.spent * 100}%` }} />
          <span className="hatched" style={{ width: `${shares.reserved * 100}%` }} />
        </span>
      )}
    </span>
  );
}
