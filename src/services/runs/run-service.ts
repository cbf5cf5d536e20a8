/** Runs as users see them: submit, list, show, cancel, follow. */
import { type EventPage, type RunEvent, terminalEvents } from '../../contracts/event.ts';
import type { Json } from '../../contracts/primitives.ts';
import {
  type Run,
  type RunRequest,
  type RunState,
  type RunSummary,
  type StepDetail,
  terminalRunStates,
} from '../../contracts/run.ts';
import { onStop, Stop, type StopSignal } from '../../core/stop.ts';
import { listStepAttempts } from '../../db/attempt.ts';
import type { Db } from '../../db/connect.ts';
import { listEvents } from '../../db/event.ts';
import { requestCancel } from '../../db/run.ts';
import { listRuns, type RunDetailRow, readRun } from '../../db/run-list.ts';
import { listRunSteps, readStepOutput } from '../../db/step.ts';
import { listStepRevisions } from '../../db/step-revision.ts';
import { AppError } from '../../errors.ts';
import { decodeCursor, toPage } from '../cursor.ts';
import { resolveInput } from '../steps/execute-step.ts';
import type { RunContexts } from '../steps/run-context.ts';
import type { StepResults } from '../steps/step-results.ts';
import type { RunDelivery } from './deliver-run.ts';
import { type EventFeed, toRunEvent } from './event-feed.ts';
import { toAttempt, toRun, toRunStep, toRunSummary, toStepRevision } from './run-view.ts';
import type { Idempotency, SubmitRun } from './submit-run.ts';

export interface RunFilter {
  readonly pipeline?: string | undefined;
  readonly state?: RunState | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  /** `key=value` */
  readonly label?: string | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

export interface RunDependencies {
  readonly db: Db;
  readonly submitRun: SubmitRun;
  readonly delivery: RunDelivery;
  readonly feed: EventFeed;
  readonly contexts: RunContexts;
  readonly results: StepResults;
}

export const createRunService = (dependencies: RunDependencies) => {
  const { db, submitRun, delivery, feed, contexts, results } = dependencies;

  const require = async (projectId: string, runId: string): Promise<RunDetailRow> => {
    const row = await readRun(db, projectId, runId);
    if (row === undefined) throw new AppError('not_found', `there is no run ${runId}`);
    return row;
  };

  const get = async (projectId: string, runId: string): Promise<Run> =>
    toRun(await require(projectId, runId), await listRunSteps(db, runId));

  async function* watch(projectId: string, runId: string, after: number, signal: StopSignal) {
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
    ): Promise<{ run: Run; replayed: boolean }> => {
      const { run, replayed } = await submitRun(projectId, request, idempotency);
      if (!replayed) delivery.startSoon(run.run_id);
      return { run, replayed };
    },

    list: async (
      projectId: string,
      { cursor, label, limit, ...filter }: RunFilter,
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

    /** The step's own page: resolved input, output, every attempt with its decision. */
    getStep: async (projectId: string, runId: string, stepId: string): Promise<StepDetail> => {
      const row = await require(projectId, runId);
      const definition = row.definition.steps.find(({ id }) => id === stepId);
      if (definition === undefined) throw new AppError('not_found', `run ${runId} has no step ${stepId}`);
      const [steps, attempts, revisions, output] = await Promise.all([
        listRunSteps(db, runId),
        listStepAttempts(db, runId, stepId),
        listStepRevisions(db, { run_id: runId, step_id: stepId, item: 0 }),
        readStepOutput(db, runId, stepId),
      ]);
      const stepRow = steps.find(({ step_id }) => step_id === stepId);
      const input = stepRow === undefined ? undefined : await inputOf(runId, stepId);
      return {
        ...toRunStep(definition, stepRow),
        run_id: runId,
        depends_on: [...(definition.depends_on ?? [])],
        ...(input === undefined ? {} : { input }),
        ...(revisions.length === 0 ? {} : { revisions: revisions.map(toStepRevision) }),
        ...(output === undefined ? {} : { output }),
        attempt_list: attempts.map(toAttempt),
      };
    },

    /** Repeated, it changes nothing. @throws AppError `state_conflict` when the run has ended */
    cancel: async (projectId: string, runId: string, reason: string | undefined): Promise<Run> => {
      const { state } = await require(projectId, runId);
      if (!(await requestCancel(db, projectId, runId, reason ?? null))) {
        if (state !== 'cancelled') throw new AppError('state_conflict', `run ${runId} has ended: ${state}`);
      } else delivery.cancelSoon(runId);
      return get(projectId, runId);
    },

    events: async (projectId: string, runId: string, after: number, limit: number): Promise<EventPage> => {
      await require(projectId, runId);
      const items = (await listEvents(db, runId, { before: null, after, limit })).map(toRunEvent);
      return { items, next_after: items.at(-1)?.seq ?? after };
    },

    /** Ends after the run's last event. */
    watch: (projectId: string, runId: string, after: number, signal: StopSignal): AsyncIterable<RunEvent> =>
      watch(projectId, runId, after, signal),

    /** The run when it has ended, or as it is when the time is over. */
    waitForEnd: async (
      projectId: string,
      runId: string,
      timeoutMs: number,
      signal: StopSignal,
    ): Promise<Run> => {
      const limit = new Stop();
      const stopListening = onStop(signal, () => limit.abort('gone'));
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

  /** Derived again from what never changes; absent while a result it needs is missing. */
  async function inputOf(runId: string, stepId: string): Promise<Json | undefined> {
    const context = await contexts.open(runId);
    const step = context.compiled.steps[context.indexOf.get(stepId) ?? -1];
    if (step === undefined) return undefined;
    const resolved = await resolveInput(context, step, results);
    return 'input' in resolved ? resolved.input : undefined;
  }
};

export type RunService = ReturnType<typeof createRunService>;

const splitLabel = (label: string | undefined): readonly [string, string] | undefined => {
  if (label === undefined) return undefined;
  const at = label.indexOf('=');
  if (at > 0) return [label.slice(0, at), label.slice(at + 1)];
  throw new AppError('request_invalid', `label is "${label}", allowed is key=value`);
};
