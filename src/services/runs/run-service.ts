/** Runs as users see them: submit, list, show, control, repeat, follow. */
import { type EventPage, type RunEvent, terminalEvents } from '../../contracts/event.ts';
import {
  type Run,
  type RunRequest,
  type RunState,
  type RunSummary,
  type StepDetail,
  terminalRunStates,
} from '../../contracts/run.ts';
import { type CancelSignal, CancelSource, onCancel } from '../../core/cancellation.ts';
import { listEvents } from '../../db/run/event.ts';
import { listRuns, type RunDetailRow, readRun } from '../../db/run/run-list.ts';
import { listRunSteps } from '../../db/step/step.ts';
import { AppError } from '../../errors/app-error.ts';
import { decodeCursor, toPage } from '../cursor.ts';
import type { Idempotency } from './answer-once.ts';
import { createRunControl } from './control-run.ts';
import type { RunDelivery } from './deliver-run.ts';
import { type EventFeed, toRunEvent } from './event-feed.ts';
import type { RerunOrder, RerunRun } from './rerun-run.ts';
import { toRun, toRunSummary } from './run-view.ts';
import { createStepPages, type ItemQuery, type StepPageDependencies } from './step-pages.ts';
import type { BulkOrder, BulkSubmission, Submission, SubmitRun, SubmitRuns } from './submit-run.ts';

export interface RunQuery {
  readonly pipeline?: string | undefined;
  readonly state?: RunState | undefined;
  readonly parent?: 'none' | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  /** `key=value` */
  readonly label?: string | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

export interface RunDependencies extends StepPageDependencies {
  readonly submitRun: SubmitRun;
  readonly submitRuns: SubmitRuns;
  readonly reruns: RerunRun;
  readonly delivery: RunDelivery;
  readonly feed: EventFeed;
}

export function createRunService(dependencies: RunDependencies) {
  const { db, submitRun, submitRuns, reruns, delivery, feed } = dependencies;
  const pages = createStepPages(dependencies);

  const require = async (projectId: string, runId: string): Promise<RunDetailRow> => {
    const row = await readRun(db, projectId, runId);
    if (row === undefined) throw new AppError('not_found', `there is no run ${runId}`);
    return row;
  };

  const get = async (projectId: string, runId: string): Promise<Run> =>
    toRun(await require(projectId, runId), await listRunSteps(db, runId));

  async function* watch(projectId: string, runId: string, after: number, signal: CancelSignal) {
    const { state } = await require(projectId, runId);
    const [next] = await listEvents(db, runId, { before: null, after, limit: 1 });
    if (next === undefined && terminalRunStates.has(state)) return;
    for await (const event of feed.watch(runId, after, signal)) {
      yield event;
      if (terminalEvents.has(event.type)) return;
    }
  }

  return {
    submit: async (
      projectId: string,
      request: RunRequest,
      idempotency: Idempotency | null,
    ): Promise<Submission> => {
      const { run, replayed, start } = await submitRun(projectId, request, idempotency);
      if (start !== null) delivery.startNew(start);
      return { run, replayed };
    },

    submitAll: async (order: BulkOrder): Promise<BulkSubmission> => {
      const submission = await submitRuns(order);
      if (submission.replayed) return submission;
      for (const { run_id } of submission.answer.items) if (run_id !== undefined) delivery.startSoon(run_id);
      return submission;
    },

    preview: reruns.preview,

    rerun: async (order: RerunOrder): Promise<Submission> => {
      const { run, replayed } = await reruns.rerun(order);
      if (!replayed) delivery.startSoon(run.run_id);
      return { run, replayed };
    },

    list: async (
      projectId: string,
      { cursor, label, limit, ...filter }: RunQuery,
    ): Promise<{ items: RunSummary[]; next_cursor: string | null }> => {
      const after = cursor === undefined ? undefined : decodeCursor(cursor);
      const rows = await listRuns(db, projectId, {
        ...filter,
        label: splitLabel(label),
        after,
        limit: limit + 1,
      });
      return toPage(rows, limit, { key: ({ run_id }) => run_id, item: toRunSummary });
    },

    /** @throws AppError `not_found` */
    get,

    /** The step's own page, or that of one of its items. @throws AppError `not_found` */
    getStep: async (projectId: string, runId: string, stepId: string, item: number): Promise<StepDetail> =>
      pages.getStep(await require(projectId, runId), stepId, item),

    /** @throws AppError `not_found` */
    listItems: async (projectId: string, runId: string, stepId: string, query: ItemQuery) =>
      pages.listItems(await require(projectId, runId), stepId, query),

    ...createRunControl({
      db,
      delivery,
      get,
      readState: async (key) => (await require(key.project_id, key.run_id)).state,
    }),

    events: async (projectId: string, runId: string, after: number, limit: number): Promise<EventPage> => {
      await require(projectId, runId);
      const items = (await listEvents(db, runId, { before: null, after, limit })).map(toRunEvent);
      return { items, next_after: items.at(-1)?.seq ?? after };
    },

    /** Ends after the run's last event. */
    watch: (projectId: string, runId: string, after: number, signal: CancelSignal): AsyncIterable<RunEvent> =>
      watch(projectId, runId, after, signal),

    /** The run when it has ended, or as it is when the time is over. */
    waitForEnd: async (
      projectId: string,
      runId: string,
      timeoutMs: number,
      signal: CancelSignal,
    ): Promise<Run> => {
      const limit = new CancelSource();
      const stopListening = onCancel(signal, () => limit.abort('gone'));
      const timer = setTimeout(() => limit.abort('late'), timeoutMs);
      try {
        for await (const event of watch(projectId, runId, 0, limit)) {
          if (terminalEvents.has(event.type)) break;
        }
      } finally {
        clearTimeout(timer);
        stopListening();
      }
      return get(projectId, runId);
    },
  };
}

export type RunService = ReturnType<typeof createRunService>;

function splitLabel(label: string | undefined): readonly [string, string] | undefined {
  if (label === undefined) return undefined;
  const at = label.indexOf('=');
  if (at > 0) return [label.slice(0, at), label.slice(at + 1)];
  throw new AppError('request_invalid', `label is "${label}", allowed is key=value`);
}
