/**
 * Runs as users see them: submit, list, show, control, repeat, follow.
 *
 * Runs that begin: from a request, from many at once, from a run that was there before.
 */
import type { Awaiting, Run, RunRequest, RunState, RunSummary, StepDetail } from '../../contracts/run.ts';
import type { RunsSummaryQuery } from '../../contracts/run-picture.ts';
import type { CancelSignal } from '../../core/cancellation.ts';
import type { Db } from '../../db/connect.ts';
import type { RunKey } from '../../db/run/run-control.ts';
import { listRuns, type RunDetailRow, readRun } from '../../db/run/run-list.ts';
import { listRunSteps } from '../../db/step/step.ts';
import { decodeCursor, toPage } from '../cursor.ts';
import { type DeliveryCtx, deliverSoon } from '../delivery/deliveries.ts';
import type { WebLinks } from '../web-links.ts';
import { createRunControl } from './control.ts';
import { runStarts, startNew } from './delivery.ts';
import { createFollowRun, type EventFeed } from './events.ts';
import { readRunsSummary, readTimeline, requirePictured, toRunGraph } from './pictures.ts';
import type { RerunOrder, RerunRun } from './rerun.ts';
import { createStepCounter, noSuchRun, toRun, toRunSummary } from './run-view.ts';
import { createStepPages, type ItemQuery, type StepPageDependencies, type StepQuery } from './step-pages.ts';
import type {
  BulkOrder,
  BulkSubmission,
  Idempotency,
  Submission,
  SubmitRun,
  SubmitRuns,
} from './submission.ts';

interface BeginDependencies {
  readonly submitRun: SubmitRun;
  readonly submitRuns: SubmitRuns;
  readonly reruns: RerunRun;
  readonly deliveryCtx: DeliveryCtx;
}

/** The row is written first; Temporal is told right after, unless an earlier request has done it. */
function createBeginRun({ submitRun, submitRuns, reruns, deliveryCtx }: BeginDependencies) {
  return {
    submit: async (
      projectId: string,
      request: RunRequest,
      idempotency: Idempotency | null,
    ): Promise<Submission> => {
      const { run, replayed, start } = await submitRun(projectId, request, idempotency);
      if (start !== null) void startNew(deliveryCtx, start);
      return { run, replayed };
    },

    submitAll: async (order: BulkOrder): Promise<BulkSubmission> => {
      const submission = await submitRuns(order);
      if (submission.replayed) return submission;
      for (const { run_id } of submission.answer.items) {
        if (run_id !== undefined) void deliverSoon(deliveryCtx, runStarts, { run_id });
      }
      return submission;
    },

    preview: reruns.preview,

    rerun: async (order: RerunOrder): Promise<Submission> => {
      const { run, replayed } = await reruns.rerun(order);
      if (!replayed) void deliverSoon(deliveryCtx, runStarts, { run_id: run.run_id });
      return { run, replayed };
    },
  };
}

export interface RunQuery {
  readonly pipeline?: string | undefined;
  readonly state?: RunState | undefined;
  readonly awaiting?: Awaiting | undefined;
  /** Part of a name, an id or a label. */
  readonly q?: string | undefined;
  readonly parent?: 'none' | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly label?: readonly [name: string, value: string] | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

interface RunDependencies extends StepPageDependencies, BeginDependencies {
  /** For lists and sums, whose reading takes as long as they are large. */
  readonly historyDb: Db;
  readonly feed: EventFeed;
  readonly web: WebLinks;
}

async function listSummaries(
  { db, countSteps }: { readonly db: Db; readonly countSteps: ReturnType<typeof createStepCounter> },
  projectId: string,
  { cursor, limit, ...filter }: RunQuery,
): Promise<{ items: RunSummary[]; next_cursor: string | null }> {
  const after = cursor === undefined ? undefined : decodeCursor(cursor);
  const wanted = { ...filter, after, limit: limit + 1 };
  const rows = await countSteps(await listRuns(db, projectId, wanted));
  return toPage(rows, limit, { key: ({ run_id }) => run_id, item: toRunSummary });
}

export function createRunService(dependencies: RunDependencies) {
  const { db, historyDb, deliveryCtx, feed, web } = dependencies;
  const pages = createStepPages(dependencies);
  const countSteps = createStepCounter(historyDb);

  const require = async ({ project_id, run_id }: RunKey): Promise<RunDetailRow> => {
    const row = await readRun(db, project_id, run_id);
    if (row === undefined) throw noSuchRun(run_id);
    return row;
  };
  const readState = async (key: RunKey): Promise<RunState> => (await require(key)).state;
  const get = async (project_id: string, run_id: string): Promise<Run> =>
    toRun(await require({ project_id, run_id }), await listRunSteps(db, run_id), web);
  const { requireRun, events, watch, untilEnd } = createFollowRun({ db, feed, readState });

  return {
    ...createBeginRun(dependencies),
    ...createRunControl({ db, deliveryCtx, get, readState }),

    list: (projectId: string, query: RunQuery) =>
      listSummaries({ db: historyDb, countSteps }, projectId, query),

    /** @throws AppError `not_found` */
    get,

    /** The step's own page, or that of one of its items. @throws AppError `not_found` */
    getStep: async (key: RunKey, stepId: string, query: StepQuery): Promise<StepDetail> =>
      pages.getStep(await require(key), stepId, query),

    /** @throws AppError `not_found` */
    listItems: async (key: RunKey, stepId: string, query: ItemQuery) =>
      pages.listItems(await require(key), stepId, query),

    /** @throws AppError `not_found` */
    graph: async (key: RunKey) => toRunGraph(await requirePictured(db, key)),

    /** @throws AppError `not_found`, `request_invalid` for a cursor that is none */
    timeline: async (key: RunKey, cursor: string | undefined) =>
      readTimeline(db, await requirePictured(db, key), cursor),

    summary: (projectId: string, query: RunsSummaryQuery) => readRunsSummary(historyDb, projectId, query),

    requireRun,

    events,
    watch,

    /** The run when it has ended, or as it is when the time is over. */
    waitForEnd: async (key: RunKey, timeoutMs: number, signal: CancelSignal): Promise<Run> => {
      await untilEnd(key, timeoutMs, signal);
      return get(key.project_id, key.run_id);
    },
  };
}

export type RunService = ReturnType<typeof createRunService>;
