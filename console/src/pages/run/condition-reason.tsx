/** The sentence under the condition of a run: the cause that other data shows, or the end of the wait. */
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import type { Run } from '../../../../src/contracts/run.ts';
import type { RunStep } from '../../../../src/contracts/run-step.ts';
import { conditionOfRun, type RunCondition, toSentence } from '../../../../src/core/run/condition.ts';
import { capabilitiesQuery, routeQuery } from '../../api/capabilities.ts';
import { reviewQuery } from '../../api/reviews.ts';
import { runGraphQuery, runQuery } from '../../api/runs.ts';
import { type RouteQuestion, routeQuestionOf } from '../../decision/route-question.ts';
import { formatClock, formatDuration } from '../../shared/format.ts';
import { useNow } from '../../shared/use-now.ts';
import { wakeOf } from './model.ts';
import { describeNeed, needOfRun } from './rerun-model.ts';
import { useOutlook } from './use-outlook.ts';

interface ConditionReasonProps {
  readonly run: Run;
  readonly condition: RunCondition;
}

export function ConditionReason({ run, condition }: ConditionReasonProps): ReactElement | null {
  const steps = run.steps.filter(({ id }) => condition.steps.includes(id));
  const [step] = steps;
  if (step === undefined) return null;
  switch (condition.kind) {
    case 'review':
      return step.review !== undefined || step.review_id === undefined ? null : (
        <Refusal reviewId={step.review_id} />
      );
    case 'budget':
      return <BudgetNeeded run={run} />;
    case 'capability':
      return <NoInstance run={run} step={step} />;
    case 'run':
      return step.sub_run_id === undefined ? null : <ChildRun runId={step.sub_run_id} />;
    case 'time':
      return <Wake steps={steps} />;
    case 'retrying':
      return <>Attempt {step.attempts} failed. The next attempt starts by itself.</>;
    default:
      return null;
  }
}

/** The error that the review is about. */
function Refusal({ reviewId }: { readonly reviewId: string }): ReactElement | null {
  const { payload } = useQuery(reviewQuery(reviewId)).data ?? {};
  const error = payload?.details?.last_error ?? payload?.error;
  return typeof error === 'string' ? <>Last error: {error}</> : null;
}

function BudgetNeeded({ run }: { readonly run: Run }): string | null {
  const { outlook } = useOutlook(run, true);
  const need = outlook === null ? null : needOfRun(run, outlook.planned);
  return need === null ? null : describeNeed(need);
}

interface NoInstanceProps {
  readonly run: Run;
  readonly step: RunStep;
}

function NoInstance({ run, step }: NoInstanceProps): ReactElement | null {
  const { data: graph } = useQuery(runGraphQuery(run.run_id));
  const { data: known } = useQuery(capabilitiesQuery());
  const question = graph === undefined ? null : routeQuestionOf(run, graph.definition, step);
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

function Wake({ steps }: { readonly steps: readonly RunStep[] }): ReactElement | null {
  const now = useNow();
  const at = wakeOf(steps);
  if (at === null) return null;
  return (
    <>
      The run continues by itself at {formatClock(at, now)}, in {formatDuration(Date.parse(at) - now)}.
    </>
  );
}
