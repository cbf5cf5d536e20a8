/** The sentence under the condition of a run: the cause that other data shows, or the end of the wait. */

import type { Review } from '@capstan/core/contracts/review';
import type { Run } from '@capstan/core/contracts/run';
import type { RunStep } from '@capstan/core/contracts/run-step';
import { resolveStepSettings } from '@capstan/core/definition/step-settings';
import { conditionOfRun, type RunCondition, toSentence } from '@capstan/core/run/run-status';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactElement, ReactNode } from 'react';
import { isOwnBudget, useBudgetReview } from '../../api/budget-review.ts';
import { capabilitiesQuery, routeQuery } from '../../api/capabilities.ts';
import { openReviewsQuery, reviewQuery } from '../../api/reviews.ts';
import { failedItemsQuery, itemsQuery, runGraphQuery, runQuery, stepQuery } from '../../api/runs.ts';
import type { RouteQuestion } from '../../decision/route-question.ts';
import { useRouteQuestion } from '../../decision/use-route-question.ts';
import { actionWords } from '../../review/review-words.ts';
import { Moment } from '../../shared/ago.tsx';
import { formatClock, formatDuration } from '../../shared/format.ts';
import { linkClass } from '../../shared/parts.tsx';
import { useNow } from '../../shared/use-now.ts';
import { offeredActions } from '../review/model.ts';
import { causeOf, describeItemFailures, describeLater, describeRetry, nextRoundAt, wakeOf } from './model.ts';
import { describeNeed, needOfRun } from './rerun-model.ts';
import { useOutlook } from './use-outlook.ts';

interface ConditionReasonProps {
  readonly run: Run;
  readonly condition: RunCondition;
}

export function ConditionReason({ run, condition }: ConditionReasonProps): ReactNode {
  const steps = run.steps.filter(({ id }) => condition.steps.includes(id));
  const [step] = steps;
  if (condition.kind === 'paused' && run.pause !== undefined)
    return (
      <>
        Since <Moment at={run.pause.since} />. No new call starts before the resume.
      </>
    );
  if (step === undefined) return null;
  switch (condition.kind) {
    case 'review':
      return <AskedOfPerson run={run} step={step} told={condition.detail} />;
    case 'partly':
      return step.items === undefined ? step.error?.message : <FailedItems run={run} step={step} />;
    case 'budget':
      if (step.state === 'in_review') return <AskedOfPerson run={run} step={step} told={condition.detail} />;
      return <BudgetNeeded run={run} />;
    case 'capability':
      return <NoInstance run={run} step={step} />;
    case 'run':
      return step.sub_run_id === undefined ? null : <ChildRun runId={step.sub_run_id} />;
    case 'time':
      return step.max_rounds === undefined ? (
        <Wake at={wakeOf(steps)} />
      ) : (
        <NextRound run={run} step={step} />
      );
    case 'callback':
      return <LaterAnswer run={run} step={step} />;
    case 'failed':
      return <FirstCause run={run} step={step} told={condition.detail} />;
    case 'retrying':
      return <NextAttempt run={run} step={step} />;
    default:
      return null;
  }
}

interface StepReasonProps {
  readonly run: Run;
  readonly step: RunStep;
}

/** The question of the review, its error, and the possible answers. */
function AskedOfPerson({
  run,
  step,
  told,
}: StepReasonProps & { readonly told: string }): ReactElement | null {
  // An item's review is known only to the list of reviews.
  const isOfItem = step.review_id === undefined;
  const first = useQuery({ ...openReviewsQuery({ run_id: run.run_id }), enabled: isOfItem }).data?.[0];
  const reviewId = step.review_id ?? first?.review_id;
  const review = useQuery({ ...reviewQuery(reviewId ?? ''), enabled: reviewId !== undefined }).data;
  if (review === undefined) return null;
  const { details, error: said } = review.payload;
  const last = details?.last_error;
  return (
    <>
      {told.includes(review.reason) ? '' : `The review asks: ${review.reason}. `}
      {said === undefined || told.includes(said) ? '' : `Cause: ${said}. `}
      {typeof last === 'string' && last !== said ? `Last attempt: ${last}. ` : ''}
      You can answer:{' '}
      {offeredActions(review)
        .map((action) => actionWords[action])
        .join(', ')}
      .
    </>
  );
}

/** The error of the step's own call, where the run's error is that of the last one who tried to correct it. */
function FirstCause({ run, step, told }: StepReasonProps & { readonly told: string }): string | null {
  const isEscalated = step.escalation_id !== undefined;
  const { data } = useQuery({ ...stepQuery(run.run_id, step.id), enabled: isEscalated });
  const cause = data === undefined ? '' : causeOf(data, told);
  return cause === '' ? null : `The call of ${step.id} was refused: ${cause}`;
}

function FailedItems({ run, step }: StepReasonProps): string | null {
  const { data } = useQuery(failedItemsQuery(run.run_id, step.id));
  return data === undefined ? null : describeItemFailures(data);
}

function NextAttempt({ run, step }: StepReasonProps): ReactElement {
  const now = useNow();
  const { data: graph } = useQuery(runGraphQuery(run.run_id));
  const options = stepQuery(run.run_id, step.id);
  const { data: detail } = useQuery({
    ...options,
    queryKey: [...options.queryKey, `${step.state} ${step.attempts}`],
  });
  const own = graph?.definition.steps.find(({ id }) => id === step.id);
  if (graph === undefined || own === undefined || detail?.attempts.length !== step.attempts) {
    return <>Attempt {step.attempts} failed. The next one starts automatically.</>;
  }
  return <>{describeRetry(detail, resolveStepSettings(graph.definition, own).retry, now)}</>;
}

function BudgetNeeded({ run }: { readonly run: Run }): ReactNode {
  const { outlook } = useOutlook(run, true);
  const review = useBudgetReview(run);
  const need = outlook === null ? null : needOfRun(run, outlook.planned);
  if (review != null && !isOwnBudget(run, review)) return <OtherBudget review={review} />;
  return need === null ? null : describeNeed(need);
}

function OtherBudget({ review: { run_id, reason } }: { readonly review: Review }): ReactElement {
  if (run_id === undefined) return <>{reason}.</>;
  return (
    <>
      It is the budget of{' '}
      <Link to="/runs/$runId" params={{ runId: run_id }} className={linkClass}>
        the run above
      </Link>{' '}
      that is used up.
    </>
  );
}

function NoInstance({ run, step }: StepReasonProps): ReactElement | null {
  const { data: known } = useQuery(capabilitiesQuery());
  // Items wait where their step as a whole is running.
  const asking =
    step.items === undefined ? step : ({ ...step, state: 'waiting', awaiting: 'capability' } as const);
  const question = useRouteQuestion(run, asking);
  if (question === null || known === undefined) return null;
  if (known.items.some(({ name }) => name === question.capability)) return <RouterSays question={question} />;
  return <>No instance has registered {question.capability}. The run continues when one does.</>;
}

function RouterSays({ question }: { readonly question: RouteQuestion }): string | null {
  const { data } = useQuery(routeQuery(question));
  return data?.reason ?? null;
}

function ChildRun({ runId }: { readonly runId: string }): ReactElement | null {
  const { data: child } = useQuery(runQuery(runId));
  if (child === undefined) return null;
  const condition = conditionOfRun(child);
  return (
    <>
      The child run shows “{toSentence(condition)}”. <ConditionReason run={child} condition={condition} />
    </>
  );
}

const readEveryMs = 5_000;

/** Of a step with `repeat`, in the pause between two rounds. */
function NextRound({ run, step }: StepReasonProps): ReactElement {
  const { data: graph } = useQuery(runGraphQuery(run.run_id));
  const { data: rounds = [] } = useQuery({
    ...itemsQuery(run.run_id, step.id),
    refetchInterval: readEveryMs,
  });
  const own = graph?.definition.steps.find(({ id }) => id === step.id);
  return <Wake at={nextRoundAt(rounds, own?.repeat?.pause)} />;
}

function LaterAnswer({ run, step }: StepReasonProps): ReactNode {
  const now = useNow();
  const isOne = step.items === undefined;
  const { data: graph } = useQuery({ ...runGraphQuery(run.run_id), enabled: isOne });
  const options = stepQuery(run.run_id, step.id);
  const { data: detail } = useQuery({
    ...options,
    queryKey: [...options.queryKey, `${step.state} ${step.attempts}`],
    enabled: isOne,
  });
  if (!isOne) return 'Their instances have accepted the calls and send the answers later.';
  const own = graph?.definition.steps.find(({ id }) => id === step.id);
  if (graph === undefined || own === undefined || detail === undefined) return null;
  return describeLater(detail, resolveStepSettings(graph.definition, own).timeoutMs, now);
}

function Wake({ at }: { readonly at: string | null }): ReactElement | null {
  const now = useNow();
  if (at === null || Date.parse(at) < now) return null;
  return (
    <>
      The run continues automatically at {formatClock(at, now)}, in {formatDuration(Date.parse(at) - now)}.
    </>
  );
}
