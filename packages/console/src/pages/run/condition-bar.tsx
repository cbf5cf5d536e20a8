import type { Run } from '@capstan/core/contracts/run';
import type { RunCondition } from '@capstan/core/run/run-status';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { isOwnBudget, useBudgetReview } from '../../api/budget-review.ts';
import { capabilitiesQuery } from '../../api/capabilities.ts';
import { controlRun } from '../../api/runs.ts';
import { Icon } from '../../shared/icon.tsx';
import { Button, buttonClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { conditionLooks, toneSoft, toneText } from '../../shared/state.ts';
import { ConditionReason } from './condition-reason.tsx';
import { describeSuccess, type NextStep, nextStepsOf } from './model.ts';
import { RunDialog } from './run-dialogs.tsx';
import { useRunChange } from './use-run-change.ts';

export interface ConditionBarProps {
  readonly run: Run;
  readonly condition: RunCondition;
  /** The page shows a past moment, which allows no actions. */
  readonly isPast: boolean;
}

/** The condition of the run with its reason, and the buttons that change it. */
export function ConditionBar({ run, condition, isPast }: ConditionBarProps): ReactElement {
  const { icon, tone } = conditionLooks[condition.kind];
  const steps = isPast ? [] : nextStepsOf(run, condition);
  const detail = condition.kind === 'succeeded' ? describeSuccess(run) : condition.detail;
  return (
    <section
      aria-label="What the run is doing"
      className={`mt-2 flex flex-wrap items-center gap-x-4 gap-y-2 rounded-lg px-3 py-2 text-sm ${toneSoft[tone]}`}
    >
      <p className="flex min-w-0 flex-1 basis-full items-start sm:basis-60 gap-2">
        <Icon
          name={icon}
          size={16}
          className={`mt-0.5 ${toneText[tone]} ${condition.kind === 'running' ? 'turning' : ''}`}
        />
        <span className="min-w-0 break-words">
          <span className={`font-medium ${toneText[tone]}`}>{condition.title}</span>
          {detail === '' ? null : <>: {detail}</>}
          {isPast ? null : (
            <span className="block text-muted empty:hidden">
              <ConditionReason run={run} condition={condition} />
            </span>
          )}
        </span>
      </p>
      {steps.map((step) => (
        <NextButton key={step.kind} run={run} step={step} />
      ))}
      {run.error === undefined || run.error.message === condition.detail ? null : (
        <WholeError error={run.error} />
      )}
    </section>
  );
}

function WholeError({
  error: { code, message },
}: {
  readonly error: NonNullable<Run['error']>;
}): ReactElement {
  return (
    <details className="basis-full">
      <summary className="cursor-pointer text-xs text-muted">
        Show the whole error (<code className="font-mono">{code}</code>)
      </summary>
      <pre className="scrolls mt-1 max-h-60 whitespace-pre-wrap break-words font-mono text-xs">{message}</pre>
    </details>
  );
}

function NextButton({ run, step }: { readonly run: Run; readonly step: NextStep }): ReactElement {
  switch (step.kind) {
    case 'review':
      return (
        <Link to="/reviews/$reviewId" params={{ reviewId: step.reviewId }} className={buttonClass('primary')}>
          Review now
        </Link>
      );
    case 'capability':
      return <ShowCapability name={step.name} />;
    case 'run':
      return (
        <Link to="/runs/$runId" params={{ runId: step.runId }} className={buttonClass('plain')}>
          Open that run
        </Link>
      );
    case 'step':
      return <OpenStep stepId={step.stepId} />;
    case 'output':
      return (
        <Link
          to="/runs/$runId"
          params={{ runId: run.run_id }}
          search={{ view: 'output' }}
          className={buttonClass('plain')}
        >
          Show the output
        </Link>
      );
    case 'resume':
      return <Resume runId={run.run_id} />;
    case 'raise':
      return <RaiseBudget run={run} />;
    case 'retry':
      return <AskFirst run={run} kind="rerun" />;
  }
}

function ShowCapability({ name }: { readonly name: string }): ReactElement {
  const known = useQuery(capabilitiesQuery()).data?.items;
  const isUnknown = known !== undefined && !known.some((capability) => capability.name === name);
  return (
    <Link to="/capabilities/$name" params={{ name }} className={buttonClass('primary')}>
      {isUnknown ? `How to register ${name}` : `Show ${name}`}
    </Link>
  );
}

function OpenStep({ stepId }: { readonly stepId: string }): ReactElement {
  const navigate = useNavigate({ from: '/runs/$runId' });
  const open = (): void => {
    void navigate({ search: (known) => ({ ...known, step: stepId }) });
  };
  return <Button onClick={open}>Open {stepId}</Button>;
}

function Resume({ runId }: { readonly runId: string }): ReactElement {
  const resume = useRunChange(runId, () => controlRun(runId, 'resume'));
  return (
    <>
      <Button icon="play" disabled={resume.isPending} onClick={() => resume.mutate(undefined)}>
        Resume the run
      </Button>
      {resume.error === null ? null : <ProblemView error={resume.error} />}
    </>
  );
}

/** The budget of a parent, a day, a key or a label is raised where its review is. */
function RaiseBudget({ run }: { readonly run: Run }): ReactElement {
  const review = useBudgetReview(run);
  if (review == null || isOwnBudget(run, review)) return <AskFirst run={run} kind="raise" />;
  return (
    <Link to="/reviews/$reviewId" params={{ reviewId: review.review_id }} className={buttonClass('primary')}>
      Review the budget
    </Link>
  );
}

function AskFirst({ run, kind }: { readonly run: Run; readonly kind: 'raise' | 'rerun' }): ReactElement {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button look="primary" onClick={() => setOpen(true)}>
        {kind === 'raise' ? 'Raise the budget …' : 'Run again …'}
      </Button>
      {isOpen ? <RunDialog kind={kind} run={run} onClose={() => setOpen(false)} /> : null}
    </>
  );
}
