/** The page of a step, or of one of its items, and the list of its items. */

import type { StepDefinition } from '@capstan/core/contracts/pipeline';
import type { Json } from '@capstan/core/contracts/primitives';
import type { ItemQuery, RunStepItem, StepDetail, StepQuery } from '@capstan/core/contracts/run-step';
import { AppError } from '@capstan/core/errors/app-error';
import { createDispatchOf, explainDispatch } from '@capstan/core/run/dispatch';
import type { Ctx } from '../../context.ts';
import { listStepAttempts, type StepItemKey } from '../../db/attempt/attempt.ts';
import type { Db } from '../../db/connect.ts';
import { readEscalation } from '../../db/escalation/escalation.ts';
import { listLadderMoves, readLeader } from '../../db/escalation/escalation-transition.ts';
import type { RunKey } from '../../db/run/run-control.ts';
import type { RunDetailRow } from '../../db/run/run-list.ts';
import {
  listItemOutputs,
  listRunSteps,
  listStepItems,
  type RunStepRow,
  readItemOutputs,
  readStepOutput,
} from '../../db/step/step.ts';
import { listStepRevisions } from '../../db/step/step-revision.ts';
import { decodeNumberCursor, type PageRequest, toPage } from '../cursor.ts';
import { resolveInput } from '../run-data/evaluation.ts';
import { requireRun } from './run-reading.ts';
import { toAttempt, toOpenWait, toRunStep, toStepEscalation, toStepRevision } from './run-view.ts';

/** The most bytes of an output in a list of 200. */
const largestShown = 65_536;

/** The bytes after which a page of item outputs ends. */
const pageBytes = 1_048_576;

/** A step of a project's run. */
interface StepAddress extends RunKey {
  readonly step_id: string;
}

/** @throws AppError `not_found` */
function requireStep({ run_id, definition }: RunDetailRow, stepId: string): StepDefinition {
  const step = definition.steps.find(({ id }) => id === stepId);
  if (step === undefined) throw new AppError('not_found', `run ${run_id} has no step ${stepId}`);
  return step;
}

async function readItemList(
  db: Db,
  { run_id, step_id, count }: { readonly run_id: string; readonly step_id: string; readonly count: number },
  { limit, cursor }: PageRequest,
): Promise<{ output: Json[]; next_cursor: string | null }> {
  const after = cursor === undefined ? 0 : Math.min(Number(decodeNumberCursor(cursor)), count);
  const rows = await listItemOutputs(db, { run_id, step_id, after, limit, bytes: pageBytes });
  const outputs = new Map(rows.map(({ item, output }) => [item, output]));
  const next = rows.find(({ is_on_page }) => !is_on_page)?.item ?? after + limit + 1;
  const places = Array.from({ length: Math.min(next, count) - after }, (_, index) => after + index + 1);
  const { items, next_cursor } = toPage(places, next - after - 1, {
    key: String,
    item: (place) => outputs.get(place) ?? null,
  });
  return { output: items, next_cursor };
}

/** Derived again from immutable data; absent while a result it needs is missing. */
async function inputOf(
  { contexts, results }: Pick<Ctx, 'contexts' | 'results'>,
  { run_id, step_id, item }: StepItemKey,
): Promise<Json | undefined> {
  const context = await contexts.open(run_id);
  const step = context.compiled.steps[context.compiled.indexOf.get(step_id) ?? -1];
  const isUnit = step?.items === null && step.until === null;
  if (step === undefined || (!isUnit && item === 0)) return undefined;
  const resolved = await resolveInput({ context, results }, step, item);
  return 'input' in resolved ? resolved.input : undefined;
}

async function readRow(db: Db, step: StepItemKey): Promise<RunStepRow | undefined> {
  const { run_id, step_id, item } = step;
  if (item > 0) return (await listStepItems(db, step, { item }))[0];
  return (await listRunSteps(db, run_id)).find((row) => row.step_id === step_id);
}

interface OutputReading {
  readonly row: RunStepRow | undefined;
  readonly page: PageRequest;
  /** The output of the step as a whole is the list of its items' outputs. */
  readonly isList: boolean;
}

/** Reads the output; for a step with items as a whole, a page of their outputs. */
async function outputOf(
  db: Db,
  step: StepItemKey,
  { row, page, isList }: OutputReading,
): Promise<Pick<StepDetail, 'output' | 'next_cursor'>> {
  const states = row?.item_states;
  if (states && isList) {
    const count = Object.values(states).reduce((sum, some) => sum + some, 0);
    return readItemList(db, { ...step, count }, page);
  }
  const output = await readStepOutput(db, step);
  return output === undefined ? {} : { output };
}

async function readLadderOf(db: Db, escalationId: string, place: StepItemKey) {
  const row = await readEscalation(db, escalationId);
  if (row === undefined) return undefined;
  const [moves, leader] = await Promise.all([
    listLadderMoves(db, escalationId, place),
    row.leader_id === null ? undefined : readLeader(db, row.leader_id),
  ]);
  return { row, moves, leader };
}

/**
 * The page of a step, or of one of its items: resolved input, output, every attempt with its decision.
 * @throws AppError `not_found`, `request_invalid` for a cursor of another list
 */
export async function getStep(
  ctx: Pick<Ctx, 'db' | 'contexts' | 'results'>,
  { step_id, ...key }: StepAddress,
  { item, ...page }: StepQuery,
): Promise<StepDetail> {
  const { db } = ctx;
  const run = await requireRun(ctx, key);
  const { run_id } = run;
  const definition = requireStep(run, step_id);
  const place = { run_id, step_id, item };
  const [row, attempts, revisions] = await Promise.all([
    readRow(db, place),
    listStepAttempts(db, place),
    listStepRevisions(db, place),
  ]);
  if (item > 0 && row === undefined) {
    throw new AppError('not_found', `step ${step_id} of run ${run_id} has no item ${item} that has begun`);
  }
  // Reading a step must not begin it.
  const ladder = row?.escalation_id ? await readLadderOf(db, row.escalation_id, place) : undefined;
  const dispatch = createDispatchOf(run.definition, run.dispatch)(definition);
  const isOpen = row !== undefined && run.started_at !== null;
  const input = isOpen ? await inputOf(ctx, place) : undefined;
  return {
    ...toRunStep(definition, row, run.versions),
    run_id,
    depends_on: [...(definition.depends_on ?? [])],
    ...toOpenWait(row),
    ...(dispatch === null ? {} : { dispatch: explainDispatch(dispatch) }),
    ...(input === undefined ? {} : { input }),
    ...(revisions.length === 0 ? {} : { revisions: revisions.map(toStepRevision) }),
    ...(ladder === undefined ? {} : { escalation: toStepEscalation(ladder) }),
    ...(await outputOf(db, place, { row, page, isList: definition.repeat === undefined })),
    attempts: attempts.map(toAttempt),
  };
}

/** The items that have begun, in order, with their results. @throws AppError `not_found` */
export async function listItems(
  { db }: Pick<Ctx, 'db'>,
  { step_id, ...key }: StepAddress,
  { state, limit, cursor, output: wanted }: ItemQuery,
): Promise<{ items: RunStepItem[]; next_cursor: string | null }> {
  const run = await requireRun({ db }, key);
  const { run_id } = run;
  const definition = requireStep(run, step_id);
  const after = cursor === undefined ? undefined : Number(decodeNumberCursor(cursor));
  const rows = await listStepItems(db, { run_id, step_id }, { state, after, limit: limit + 1 });
  const shown = wanted === 'none' ? [] : rows.slice(0, limit).map(({ item }) => item);
  const outputs = await readItemOutputs(db, { run_id, step_id, items: shown }, largestShown);
  return toPage(rows, limit, {
    key: ({ item }) => String(item),
    item: (row) => {
      const output = outputs.get(row.item);
      return { ...toRunStep(definition, row, run.versions), ...(output === undefined ? {} : { output }) };
    },
  });
}
