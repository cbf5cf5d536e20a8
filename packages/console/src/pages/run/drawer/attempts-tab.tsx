import type { Attempt } from '@capstan/core/contracts/run-step';
import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { Moment } from '../../../shared/ago.tsx';
import { formatDuration, formatUsd } from '../../../shared/format.ts';
import { EmptyState, linkClass } from '../../../shared/parts.tsx';
import { toneFill } from '../../../shared/state.ts';
import { describeDelivery, describeOrigin, toneOfAttempt } from './attempts-model.ts';
import type { StepTabProps } from './step-tab-props.ts';

/** Every delivery to an instance, oldest first. */
export function AttemptsTab({ step }: StepTabProps): ReactElement {
  if (step.attempts.length === 0) {
    return <EmptyState title="No attempts yet">Each call of an instance shows here with its end.</EmptyState>;
  }
  return (
    <ol className="flex flex-col gap-2">
      {step.attempts.map((attempt, index) => (
        <AttemptLine
          key={attempt.attempt_id}
          attempt={attempt}
          number={index + 1}
          shown={step.error?.message}
          isLater={step.awaiting === 'callback'}
        />
      ))}
    </ol>
  );
}

function AttemptLine({
  attempt,
  number,
  shown,
  isLater,
}: {
  readonly attempt: Attempt;
  readonly number: number;
  /** The error that the step shows above all attempts. */
  readonly shown: string | undefined;
  readonly isLater: boolean;
}): ReactElement {
  return (
    <li className="rounded-md border border-line p-3 text-sm">
      <div className="flex items-center gap-2">
        <span className={`size-2 rounded-full ${toneFill[toneOfAttempt(attempt)]}`} />
        <span className="font-medium">#{number}</span>
        <span className="min-w-0 flex-1">{describeDelivery(attempt, isLater)}</span>
        <span className="figure text-muted">
          {attempt.duration_ms === null ? '' : formatDuration(attempt.duration_ms)}
        </span>
      </div>
      {attempt.cached_from === undefined ? (
        <p className="mt-1 break-all font-mono text-xs text-muted">{attempt.endpoint}</p>
      ) : (
        <p className="mt-1 text-xs text-muted">
          {describeOrigin(attempt)}, in{' '}
          <Link
            to="/runs/$runId"
            params={{ runId: attempt.cached_from.run_id }}
            className={`${linkClass} break-all`}
          >
            {attempt.cached_from.run_id}
          </Link>
        </p>
      )}
      <p className="figure mt-1 text-xs text-muted">
        <Moment at={attempt.started_at} /> · {formatUsd(attempt.cost_usd)}
        {attempt.certainty === 'estimated' ? ' (estimated)' : ''}
      </p>
      <p className="mt-1 text-xs text-muted">{attempt.decision?.reason}</p>
      {attempt.error === undefined ? null : (
        <p className="mt-1 break-words text-failed">
          <code className="font-mono text-xs">{attempt.error.code}</code>{' '}
          {attempt.error.message === shown ? 'as above' : attempt.error.message}
        </p>
      )}
    </li>
  );
}
