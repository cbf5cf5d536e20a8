/**
 * Ladders as a worker runs them, without Temporal: the real API with a registered capability and models behind one
 * scripted provider, and the real services of a worker on the same database.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunningInstance } from '@capstan/capability';
import { CancelSource } from '@capstan/core/cancellation';
import type { Escalation } from '@capstan/core/contracts/escalation';
import type { PipelineDefinition, StepDefinition } from '@capstan/core/contracts/pipeline';
import type { JsonObject, Priority } from '@capstan/core/contracts/primitives';
import type { Advanced } from '@capstan/core/workflow-payloads';
import { pino } from 'pino';
import { inject } from 'vitest';
import { ConfigSchema } from '../../src/config.ts';
import { createWorkerRuntime } from '../../src/processes/worker-runtime.ts';
import { applyDecision, stopLadder } from '../../src/use-cases/escalation/ladder/decision.ts';
import { advanceLadder } from '../../src/use-cases/escalation/ladder/transition.ts';
import { executeStep } from '../../src/use-cases/steps/execution.ts';
import { type CallOptions, startTestApi, type TestApi } from './api.ts';
import { registerInstance } from './direct-calls.ts';
import { aRun } from './factories.ts';
import { answer, type Instance } from './fleet.ts';
import { readShown, type Shown, startModelLevel } from './model-levels.ts';
import { type ModelReply, type ModelServer, startModelServer } from './model-server.ts';

export interface LadderWorld {
  readonly api: TestApi;
  readonly provider: ModelServer;
  /** Refuses odd rates; its schema requires an integer. */
  readonly capability: Instance;
  /** The prompts that the models have received. */
  readonly shown: () => readonly Shown[];
  /** Sets the models' answers from now on: JSON, or the provider's behaviour. */
  answer(script: (shown: Shown) => object | Promise<object>): void;
  /** A separate project; `call` uses its admin key. */
  readonly newProject: () => Promise<string>;
  readonly call: (projectId: string, path: string, options?: CallOptions) => Promise<Response>;
  readonly failStep: (step: FailingStep) => Promise<FailedRun>;
  /** Executes the step like the next worker after a killed one. */
  readonly repeatStep: (runId: string) => Promise<FailedRun>;
  /** Makes one transition. */
  readonly advance: (place: Pick<Advanced, 'escalation_id' | 'transition'>) => Promise<Advanced>;
  /** Makes a transition that another worker began. */
  readonly advanceAgain: LadderWorld['advance'];
  /** Makes transitions until the ladder ends or opens a review. */
  readonly climb: (place: Advanced) => Promise<Advanced>;
  readonly decided: (reviewId: string) => Promise<Advanced>;
  readonly stop: (place: Advanced, type: 'timed_out' | 'cancel_requested') => Promise<Advanced>;
  /** A ladder without a run, as its workflow would be started. */
  readonly startJob: (projectId: string, request: object) => Promise<Advanced>;
  readonly escalation: (projectId: string, id: string) => Promise<Escalation>;
  readonly close: () => Promise<void>;
}

export interface FailingStep {
  readonly project_id: string;
  readonly input: JsonObject;
  readonly step?: Partial<StepDefinition>;
  readonly rerun_of?: string;
  /** The run's. */
  readonly budget_ceiling_usd?: number;
  readonly priority?: Priority;
  /** The key that started the run. */
  readonly key_id?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** The run whose step started this one. */
  readonly parent_run_id?: string;
}

export interface FailedRun {
  readonly run_id: string;
  readonly place: Advanced;
}

export const transcode = {
  name: 'transcode',
  input: {
    type: 'object',
    properties: {
      rate: { type: 'integer', minimum: 8_000 },
      source: { type: 'string' },
      output_path: { type: 'string' },
    },
    required: ['rate'],
    additionalProperties: false,
  },
};

function isReply(given: object): boolean {
  return ['status', 'garbage', 'cut'].some((name) => name in given) || ('text' in given && 'usage' in given);
}

async function startModel(
  api: TestApi,
  provider: ModelServer,
  [level, rate]: readonly [string, number],
): Promise<RunningInstance> {
  const instance = await startModelLevel({ url: api.url, key: api.apiKey }, provider, [level, rate]);
  await api.waitForInstance(`model.${level}`, instance.endpoint);
  return instance;
}

async function startWorker(api: TestApi, settings: Readonly<Record<string, string>>) {
  const { rows } = await api.db.raw<{ rows: [{ name: string }] }>('select current_database() as name');
  const url = new URL(inject('databaseUrl'));
  url.pathname = `/${rows[0].name}`;
  const config = ConfigSchema.parse({
    DATABASE_URL: url.href,
    DATABASE_POOL: 5,
    LOG_LEVEL: 'silent',
    ...settings,
  });
  return createWorkerRuntime(config, pino({ level: 'silent' }));
}

function definitionOf(step: Partial<StepDefinition>, input: JsonObject): PipelineDefinition {
  return {
    pipeline: 'trailer',
    version: '1.0.0',
    steps: [{ id: 'a', capability: 'transcode', input, ...step }],
  };
}

function control(round: number) {
  return { round, remainingMs: 30_000, signal: new CancelSource() };
}

/**
 * @param models level (`fast`, …) to rate in USD per call
 * @param settings of the server and the worker
 */
export async function startLadderWorld(
  models: Readonly<Record<string, number>>,
  settings: Readonly<Record<string, string>> = {},
): Promise<LadderWorld> {
  const [api, provider] = await Promise.all([startTestApi(settings), startModelServer()]);
  const capability = await registerInstance(api, { ...transcode, max_concurrency: 64 });
  capability.handle = ({ input }, response) => {
    const isOdd = Number(input.rate) % 2 === 1;
    const error = `encoder: sample rate ${input.rate} is not supported, it must be even`;
    answer(response, isOdd ? 422 : 200, isOdd ? { ok: false, error } : { ok: true, output: input });
  };
  const starting = Object.entries(models).map((model) => startModel(api, provider, model));
  const [worker, ...instances] = await Promise.all([startWorker(api, settings), ...starting]);
  let other: ReturnType<typeof startWorker> | null = null;
  const shown = (): readonly Shown[] => provider.requests.map(({ body }) => readShown(body));

  const keys = new Map<string, string>();
  const call: LadderWorld['call'] = (projectId, path, options = {}) => {
    const headers = { ...options.headers, authorization: `Bearer ${keys.get(projectId)}` };
    return api.call(path, { ...options, headers });
  };

  const advance: LadderWorld['advance'] = ({ escalation_id, transition }) =>
    advanceLadder(worker.ctx, { escalation_id, transition, signal: new CancelSource() });

  const escalate = async (run_id: string, round: number): Promise<FailedRun> => {
    const request = { run_id, step_id: 'a', revision: 0, escalates: true };
    const end = await executeStep(worker.ctx, request, control(round));
    if (end.kind !== 'escalated') throw new Error(`the step was to escalate: ${JSON.stringify(end)}`);
    return { run_id, place: end.place };
  };

  return {
    api,
    provider,
    capability,
    shown,
    advance,
    advanceAgain: async ({ escalation_id, transition }) => {
      other ??= startWorker(api, settings);
      const place = { escalation_id, transition, signal: new CancelSource() };
      return advanceLadder((await other).ctx, { ...place, again: true });
    },
    answer: (script) =>
      provider.answer(async ({ body }) => {
        const given = await script(readShown(body));
        return isReply(given) ? (given as ModelReply) : { text: JSON.stringify(given) };
      }),
    call,
    newProject: async () => {
      const { projectId, apiKey } = await api.createProject('ladders');
      keys.set(projectId, apiKey);
      return projectId;
    },
    failStep: async ({ input, step = {}, parent_run_id, ...run }) => {
      const definition = definitionOf(step, input);
      const parent =
        parent_run_id === undefined ? {} : { parent_run_id, parent_step_id: 'a', parent_item: 0 };
      const { run_id } = await aRun(api.db, { definition, ...parent, ...run });
      return escalate(run_id, 1);
    },
    repeatStep: (runId) => escalate(runId, 2),
    climb: async (place) => {
      let at = place;
      for (let made = 0; at.command.type !== 'end' && made < 200; made += 1) {
        at = await advance(at);
        // Like Temporal's timer, only sooner.
        if (at.delay_ms !== undefined) await sleep(Math.min(at.delay_ms, 200));
      }
      return at;
    },
    stop: ({ escalation_id, transition }, type) =>
      stopLadder(worker.ctx, { escalation_id, transition, event: { type } }),
    startJob: async (projectId, body) => {
      const created = await call(projectId, '/v1/escalations', { body });
      if (created.status !== 202) throw new Error(await created.text());
      const { escalation_id } = (await created.json()) as Escalation;
      return advanceLadder(worker.ctx, { escalation_id, transition: -1, signal: new CancelSource() });
    },
    decided: (review_id) => applyDecision(worker.ctx, { review_id }),
    escalation: async (projectId, id) =>
      (await (await call(projectId, `/v1/escalations/${id}`)).json()) as Escalation,
    close: async () => {
      await Promise.all([worker.close(), other?.then(({ close }) => close())]);
      await Promise.all(instances.map((instance) => instance.stop()));
      await Promise.all([provider.close(), capability.stop(), api.close()]);
    },
  };
}
