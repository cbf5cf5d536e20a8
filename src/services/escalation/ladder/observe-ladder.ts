/** Counts the transitions of ladders; what a ladder does is part of the span of its step, which ends with it. */
import { capabilityOf } from '../../../core/definition/step-kind.ts';
import { noTelemetry, type Telemetry } from '../../../core/telemetry/telemetry.ts';
import { madeAtMs } from '../../../core/telemetry/trace-context.ts';
import type { Db } from '../../../db/connect.ts';
import type { EscalationRow } from '../../../db/escalation/escalation.ts';
import type { NewSkillUse } from '../../../db/skill/skill-use.ts';
import { readStep } from '../../../db/step/step.ts';
import type { RunContexts } from '../../run-data/run-context.ts';
import { stepOf as compiledStepOf } from '../../run-data/step-unit.ts';
import { endOf } from '../../steps/step-end.ts';
import { createRunSpans } from '../../telemetry/run-spans.ts';
import { stepOf } from './stored-ladder.ts';

export interface ObservedLadder {
  readonly db: Db;
  readonly contexts: RunContexts;
  /** Default: nobody is told. */
  readonly telemetry?: Telemetry;
}

/** What one transition came to. */
export interface StoredTransition {
  readonly level: number;
  readonly state: string;
  readonly uses: readonly Pick<NewSkillUse, 'outcome'>[];
}

/** Works in the span of the ladder's step; the ladder of a job by itself has none. */
export async function withinStep<Result>(
  { contexts, telemetry = noTelemetry }: Omit<ObservedLadder, 'db'>,
  row: EscalationRow,
  work: () => Promise<Result>,
): Promise<Result> {
  const step = stepOf(row);
  if (step === null) return work();
  const scope = createRunSpans(telemetry).scopeOfStep(await contexts.open(step.run_id), step);
  return telemetry.tracing.within(scope, work);
}

export async function tellTransition(
  { db, contexts, telemetry = noTelemetry }: ObservedLadder,
  row: EscalationRow,
  { level, state, uses }: StoredTransition,
): Promise<void> {
  const { metrics, tracing } = telemetry;
  metrics.add('escalations_total', { level: String(level), outcome: state });
  for (const { outcome } of uses) metrics.add('skill_uses_total', { outcome });
  const key = stepOf(row);
  if (!tracing.isOn || key === null || state === 'running' || state === 'in_review') return;
  const standing = await readStep(db, key);
  const end = standing === undefined ? null : endOf(standing);
  if (end === null) return; // its run goes on with it
  const context = await contexts.open(key.run_id);
  createRunSpans(telemetry).endStep(context, key, {
    kind: 'call',
    capability: capabilityOf(compiledStepOf(context, key.step_id).definition),
    startMs: standing?.started_at?.getTime() ?? madeAtMs(row.escalation_id),
    state: end.kind,
    error: 'error' in end ? end.error.code : null,
  });
}
