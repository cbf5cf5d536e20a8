import type { RunSummary } from '@capstan/core/contracts/run';
import { conditionOfRun } from '@capstan/core/run/run-status';
import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { Ago } from '../../shared/ago.tsx';
import { ConditionMark } from '../../shared/state-mark.tsx';

export interface RunLineProps {
  readonly run: RunSummary;
  /** The relevant time of the run in this panel. */
  readonly at: string;
}

/** A run in two lines of a narrow panel: id, time, condition and reason. */
export function RunLine({ run, at }: RunLineProps): ReactElement {
  const condition = conditionOfRun(run);
  return (
    <li>
      <Link
        to="/runs/$runId"
        params={{ runId: run.run_id }}
        className="block px-4 py-2 text-sm hover:bg-sunken/60"
      >
        <span className="flex justify-between gap-3">
          <span className="min-w-0 truncate font-medium" title={run.run_id}>
            {run.pipeline}
          </span>
          <span className="shrink-0 text-xs text-muted">
            <Ago at={at} />
          </span>
        </span>
        <span className="flex min-w-0 items-center gap-2">
          <ConditionMark condition={condition} />
          <span className="min-w-0 truncate text-xs text-muted" title={condition.detail}>
            {condition.detail}
          </span>
        </span>
      </Link>
    </li>
  );
}
