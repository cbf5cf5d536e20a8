/**
 * Runs, steps and attempts as the wire shows them, the counts of a run's steps by state, and the error for a missing
 * run.
 */

import type { DecidedRoute } from '@capstan/core/contracts/decision';
import { LadderMove } from '@capstan/core/contracts/escalation';
import type { PipelineDefinition, StepDefinition } from '@capstan/core/contracts/pipeline';
import { type Run, RunSummary } from '@capstan/core/contracts/run';
import {
  Attempt,
  type RunStep,
  type StepDetail,
  StepRevision,
  type StepState,
} from '@capstan/core/contracts/run-step';
import { toWire } from '@capstan/core/contracts/to-wire';
import { kindFieldsOf } from '@capstan/core/definition/step-settings';
import { AppError } from '@capstan/core/errors/app-error';
import { toWireAdvice, toWireAttempt } from '@capstan/core/ladder/ladder';
import { fromNanoUsd } from '@capstan/core/money/nano-usd';
import { nameScoped } from '@capstan/core/money/scoped-budget';
import { createDispatchOf, explainDispatch } from '@capstan/core/run/dispatch';
import type { AttemptRow } from '../../db/attempt/attempt.ts';
import type { Db } from '../../db/connect.ts';
import type { EscalationRow } from '../../db/escalation/escalation.ts';
import type { LadderMoveRow } from '../../db/escalation/escalation-transition.ts';
import { readScopedRow } from '../../db/money/scoped-budget.ts';
import { type NewRun, type RunRow, rowOfNew } from '../../db/run/run-columns.ts';
import {
  countDefinitionSteps,
  type RunDetailRow,
  type RunListRow,
  type StepCountColumns,
} from '../../db/run/run-list.ts';
import type { RunStepRow } from '../../db/step/step.ts';
import type { StepRevisionRow } from '../../db/step/step-revision.ts';
import { madeAt } from '../../parts/ids.ts';
import type { StepSizes } from '../../parts/step-sizes.ts';
import { linksToRun, type WebPlaces } from '../../parts/web-links.ts';
import { showHeld } from '../routing/held-pieces.ts';

function toIso(time: Date | null): string | null {
  return time?.toISOString() ?? null;
}

export function toRunSummary(row: RunListRow): RunSummary {
  return toWire(RunSummary, { ...row, ...wireFields(row) });
}

const RunFields = RunSummary.omit({ step_counts: true, item_counts: true });

/** Fields whose form on the wire differs from the row's. */
function wireFields(row: RunRow) {
  return {
    budget_ceiling_usd: row.budget_ceiling_usd === null ? null : Number(row.budget_ceiling_usd),
    cost_usd: fromNanoUsd(BigInt(row.cost_nano)),
    reserved_usd: fromNanoUsd(BigInt(row.reserved_nano)),
    parent: parentOf(row),
    awaiting: row.awaiting.length === 0 ? null : row.awaiting,
  };
}

function parentOf({
  parent_run_id: run_id,
  parent_step_id: step_id,
  parent_item: item,
}: Pick<RunRow, 'parent_run_id' | 'parent_step_id' | 'parent_item'>): Run['parent'] | null {
  return run_id === null || step_id === null ? null : { run_id, step_id, item: item ?? 0 };
}

function linksOf(runId: string): Run['links'] {
  return { self: `/v1/runs/${runId}`, events: `/v1/runs/${runId}/events` };
}

function roundsOf({ repeat }: StepDefinition): Pick<RunStep, 'max_rounds'> {
  return repeat === undefined ? {} : { max_rounds: repeat.max };
}

function pendingStep(definition: StepDefinition): RunStep {
  return {
    id: definition.id,
    state: 'pending',
    ...kindFieldsOf(definition),
    ...roundsOf(definition),
    attempts: 0,
    revision: 0,
    cost_usd: 0,
    started_at: null,
    finished_at: null,
  };
}

function optionalFields({
  item,
  awaiting,
  budget_scope,
  item_states,
  endpoint,
  error,
  escalation_id,
  review_id,
  sub_run_id,
  reused_from,
  cached,
  skill_id,
  as_decided,
}: RunStepRow) {
  const scoped = budget_scope === null ? null : readScopedRow(budget_scope);
  return {
    ...(item === 0 ? {} : { item }),
    ...(awaiting === null ? {} : { awaiting }),
    ...(scoped === null ? {} : { budget: nameScoped(scoped) }),
    ...(item_states === null ? {} : { items: { ...item_states } }),
    ...(endpoint === null ? {} : { endpoint }),
    ...(error === null ? {} : { error }),
    ...(escalation_id === null ? {} : { escalation_id }),
    ...(review_id === null ? {} : { review_id }),
    ...(sub_run_id === null ? {} : { sub_run_id }),
    ...(reused_from === null ? {} : { reused_from }),
    ...(cached === 0 ? {} : { cached }),
    ...(skill_id === null ? {} : { skill_id }),
    ...(as_decided === null ? {} : { as_decided }),
  };
}

/** @param versions that aliases of child pipelines named */
export function toRunStep(
  definition: StepDefinition,
  row: RunStepRow | undefined,
  versions: RunDetailRow['versions'],
): RunStep {
  if (row === undefined) return pendingStep(definition);
  const pipeline_version = versions[definition.pipeline ?? ''];
  return {
    id: definition.id,
    state: row.state,
    ...kindFieldsOf(definition),
    ...(row.item === 0 ? roundsOf(definition) : {}),
    ...(pipeline_version === undefined ? {} : { pipeline_version }),
    ...optionalFields(row),
    attempts: row.attempts,
    revision: row.revision,
    cost_usd: fromNanoUsd(BigInt(row.cost_nano)),
    started_at: toIso(row.started_at),
    finished_at: toIso(row.finished_at),
  };
}

export function toOpenWait(row: RunStepRow | undefined): Pick<StepDetail, 'open_wait'> {
  if (row?.state !== 'waiting' || row.wait_since === null) return {};
  const { wait_since, wait_until, awaited_key: key } = row;
  const event = key === null ? {} : { event_key: key === '' ? null : key };
  return { open_wait: { since: wait_since.toISOString(), until: toIso(wait_until), ...event } };
}

export function toStepRevision(row: StepRevisionRow): StepRevision {
  return toWire(StepRevision, row);
}

/** Lists each route once, and of each step only whether it is inline, so that a run of many steps stays short. */
function showDispatch(
  definition: PipelineDefinition,
  decided: readonly DecidedRoute[],
  show: (step: StepDefinition) => RunStep,
): Pick<Run, 'dispatch' | 'steps'> {
  const dispatchOf = createDispatchOf(definition, decided);
  return {
    ...(decided.length === 0 ? {} : { dispatch: decided.map(explainDispatch) }),
    steps: definition.steps.map((step) =>
      dispatchOf(step)?.how === 'inline' ? { ...show(step), inline: true } : show(step),
    ),
  };
}

function cancelOf(row: RunDetailRow): Pick<Run, 'cancel'> {
  const { cancel_requested_at, cancel_mode, cancel_reason, cancelled_by } = row;
  if (cancel_requested_at === null) return {};
  return {
    cancel: {
      ...(cancelled_by === null ? {} : { by: cancelled_by }),
      ...(cancel_reason === null ? {} : { reason: cancel_reason }),
      mode: cancel_mode ?? 'graceful',
      requested_at: cancel_requested_at.toISOString(),
    },
  };
}

export function toRun(row: RunDetailRow, steps: readonly RunStepRow[], web: WebPlaces): Run {
  const byId = new Map(steps.map((step) => [step.step_id, step]));
  const show = (step: StepDefinition): RunStep => toRunStep(step, byId.get(step.id), row.versions);
  return {
    ...toWire(RunFields, { ...row, ...wireFields(row) }),
    ...(row.started_by === null ? {} : { started_by: row.started_by }),
    ...cancelOf(row),
    ...(row.has_output ? { output: row.output } : {}),
    ...showDispatch(row.definition, row.dispatch, show),
    links: { ...linksOf(row.run_id), ...linksToRun({ web }, row) },
  };
}

/**
 * A run as it is at the moment of its submission.
 * @param kept ids of steps whose ends were taken from another run
 */
export function newRunView(
  run: NewRun,
  definition: PipelineDefinition,
  kept: Partial<Readonly<Record<'reused' | 'skipped', readonly string[]>>> = {},
): Run {
  const { reused = [], skipped = [] } = kept;
  const states = new Map<string, StepState>([
    ...reused.map((id) => [id, 'reused'] as const),
    ...skipped.map((id) => [id, 'skipped'] as const),
  ]);
  const row = rowOfNew(run);
  const show = (step: StepDefinition): RunStep => ({
    ...pendingStep(step),
    state: states.get(step.id) ?? 'pending',
  });
  return {
    ...toWire(RunFields, { ...row, ...wireFields(row) }),
    ...(run.started_by === undefined ? {} : { started_by: { id: run.started_by } }),
    ...showDispatch(definition, run.dispatch ?? [], show),
    links: linksOf(run.run_id),
  };
}

export function toAttempt(row: AttemptRow): Attempt {
  const cost_usd = fromNanoUsd(BigInt(row.settled_nano ?? 0));
  const settled_usd = row.settled_nano === null ? null : cost_usd;
  return toWire(Attempt, {
    ...row,
    cost_usd,
    decision: row.decision === null ? null : { ...row.decision, settled_usd, ...showHeld(row) },
  });
}

function toLadderMove({ data, began_at, cost_nano, endpoint, ...row }: LadderMoveRow): LadderMove {
  const textOf = (name: string): string | null => (typeof data[name] === 'string' ? data[name] : null);
  return toWire(LadderMove, {
    ...row,
    kind: textOf('kind') ?? '',
    level: Number(data.level),
    outcome: textOf('outcome'),
    action: textOf('action'),
    review_id: textOf('review_id'),
    began_at,
    endpoint,
    cost_usd: fromNanoUsd(BigInt(cost_nano)),
  });
}

/** A ladder, with the transitions of its log and the one that it waited for. */
interface LadderOfStep {
  readonly row: EscalationRow;
  readonly moves: readonly LadderMoveRow[];
  readonly leader: { readonly escalation_id: string; readonly run_id: string | null } | undefined;
}

export function toStepEscalation({ row, moves, leader }: LadderOfStep): StepDetail['escalation'] {
  const { escalation_level, escalation_history, escalation_advice } = row;
  return {
    moves: moves.map(toLadderMove),
    ...(leader === undefined
      ? {}
      : {
          leader: {
            escalation_id: leader.escalation_id,
            ...(leader.run_id === null ? {} : { run_id: leader.run_id }),
          },
        }),
    escalation_level,
    escalation_history: escalation_history.map(toWireAttempt),
    escalation_advice: escalation_advice.map(toWireAdvice),
  };
}

// Counts the steps of runs by state, including those that have not begun.

type Counts = StepCountColumns['step_counts'];

function withPending(begun: Counts, size: number): Counts {
  const known = Object.values(begun).reduce((sum, count) => sum + count, 0);
  return size > known ? { ...begun, pending: size - known } : begun;
}

/** Counts the definitions of a page by one query. @returns the rows with the steps that have no row yet, as pending */
export async function countSteps<Row extends StepCountColumns>(
  db: Db,
  sizes: StepSizes,
  rows: readonly Row[],
): Promise<readonly Row[]> {
  const unknown = new Set(rows.map(({ digest }) => digest).filter((digest) => !sizes.has(digest)));
  const counted = unknown.size === 0 ? [] : await countDefinitionSteps(db, [...unknown]);
  for (const [digest, steps] of counted) sizes.set(digest, steps);
  return rows.map((row) => ({
    ...row,
    step_counts: withPending(row.step_counts, sizes.get(row.digest) ?? 0),
  }));
}

const dayMs = 86_400_000;
/** No run is deleted sooner. */
const leastDays = 7;

/** The error for a missing run; for an old one it explains why it may be missing. */
export function noSuchRun(runId: string): AppError {
  const made = madeAt(runId);
  const days = made === null ? 0 : Math.floor((Date.now() - made.getTime()) / dayMs);
  const why = `; its id is ${days} days old, and runs are deleted some time after their end (RUN_RETENTION_DAYS)`;
  return new AppError('not_found', `there is no run ${runId}${days > leastDays ? why : ''}`);
}
