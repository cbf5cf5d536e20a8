/** A step's own page, of one of its items too, and the list of its items. */
import type { StepDefinition } from '../../contracts/pipeline.ts';
import type { Json } from '../../contracts/primitives.ts';
import type { RunStepItem, StepDetail, StepState } from '../../contracts/run.ts';
import { createDispatchOf, explainDispatch } from '../../core/run/dispatch.ts';
import { listStepAttempts } from '../../db/attempt/attempt.ts';
import type { Db } from '../../db/connect.ts';
import { readEscalation } from '../../db/escalation/escalation.ts';
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
import { AppError } from '../../errors/app-error.ts';
import { decodeNumberCursor, type PageRequest, toPage } from '../cursor.ts';
import { resolveInput } from '../run-data/evaluation.ts';
import type { RunContexts } from '../run-data/run-context.ts';
import type { StepResults } from '../run-data/step-results.ts';
import { toAttempt, toRunStep, toStepEscalation, toStepRevision } from './run-view.ts';

/** Bytes of an output in a list of 200. */
const largestShown = 65_536;

export interface StepPageDependencies {
  readonly db: Db;
  readonly contexts: RunContexts;
  readonly results: StepResults;
}

/** Bytes that end a page of the outputs of a step's items. */
const pageBytes = 1_048_576;

/** `limit` and `cursor` page the outputs of a step's items. */
export interface StepQuery extends PageRequest {
  /** 0 = the step as a whole */
  readonly item: number;
}

export interface ItemQuery {
  readonly state?: StepState | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
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

export function createStepPages({ db, contexts, results }: StepPageDependencies) {
  /** Derived again from what never changes; absent while a result it needs is missing. */
  const inputOf = async (runId: string, stepId: string, item: number): Promise<Json | undefined> => {
    const context = await contexts.open(runId);
    const step = context.compiled.steps[context.indexOf.get(stepId) ?? -1];
    if (step === undefined || (step.items !== null && item === 0)) return undefined;
    const resolved = await resolveInput(context, step, results, item);
    return 'input' in resolved ? resolved.input : undefined;
  };

  const readRow = async (runId: string, stepId: string, item: number): Promise<RunStepRow | undefined> => {
    if (item > 0) return (await listStepItems(db, runId, stepId, { item }))[0];
    return (await listRunSteps(db, runId)).find(({ step_id }) => step_id === stepId);
  };

  /** Of a step with items as a whole, a page of theirs. */
  const outputOf = async (
    { run_id }: RunDetailRow,
    stepId: string,
    { row, query }: { readonly row: RunStepRow | undefined; readonly query: StepQuery },
  ): Promise<Pick<StepDetail, 'output' | 'next_cursor'>> => {
    const states = row?.item_states;
    if (states) {
      const count = Object.values(states).reduce((sum, some) => sum + some, 0);
      return readItemList(db, { run_id, step_id: stepId, count }, query);
    }
    const output = await readStepOutput(db, run_id, stepId, query.item);
    return output === undefined ? {} : { output };
  };

  return {
    /**
     * Resolved input, output, every attempt with its decision.
     * @throws AppError `not_found`, `request_invalid` for a cursor of another list
     */
    getStep: async (run: RunDetailRow, stepId: string, query: StepQuery): Promise<StepDetail> => {
      const { run_id } = run;
      const { item } = query;
      const definition = requireStep(run, stepId);
      const [row, attempts, revisions] = await Promise.all([
        readRow(run_id, stepId, item),
        listStepAttempts(db, run_id, stepId, item),
        listStepRevisions(db, { run_id, step_id: stepId, item }),
      ]);
      if (item > 0 && row === undefined) {
        throw new AppError('not_found', `step ${stepId} of run ${run_id} has no item ${item} that has begun`);
      }
      // What a worker has not begun yet, a look at it must not begin.
      const ladder = row?.escalation_id ? await readEscalation(db, row.escalation_id) : undefined;
      const dispatch = createDispatchOf(run.definition, run.dispatch)(definition);
      const isOpen = row !== undefined && run.started_at !== null;
      const input = isOpen ? await inputOf(run_id, stepId, item) : undefined;
      return {
        ...toRunStep(definition, row),
        run_id,
        depends_on: [...(definition.depends_on ?? [])],
        ...(dispatch === null ? {} : { dispatch: explainDispatch(dispatch) }),
        ...(input === undefined ? {} : { input }),
        ...(revisions.length === 0 ? {} : { revisions: revisions.map(toStepRevision) }),
        ...(ladder === undefined ? {} : { escalation: toStepEscalation(ladder) }),
        ...(await outputOf(run, stepId, { row, query })),
        attempts: attempts.map(toAttempt),
      };
    },

    /** Those that have begun, in order, with what they yielded. @throws AppError `not_found` */
    listItems: async (
      run: RunDetailRow,
      stepId: string,
      { state, limit, cursor }: ItemQuery,
    ): Promise<{ items: RunStepItem[]; next_cursor: string | null }> => {
      const definition = requireStep(run, stepId);
      const after = cursor === undefined ? undefined : Number(decodeNumberCursor(cursor));
      const rows = await listStepItems(db, run.run_id, stepId, { state, after, limit: limit + 1 });
      const shown = rows.slice(0, limit).map(({ item }) => item);
      const of = { run_id: run.run_id, step_id: stepId, items: shown };
      const outputs = await readItemOutputs(db, of, largestShown);
      return toPage(rows, limit, {
        key: ({ item }) => String(item),
        item: (row) => {
          const output = outputs.get(row.item);
          return { ...toRunStep(definition, row), ...(output === undefined ? {} : { output }) };
        },
      });
    },
  };
}
