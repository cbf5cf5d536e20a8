/**
 * Steps as a worker executes them, without Temporal: the real router with test instances, and the services behind
 * `executeStep` on a database of their own. Child runs are rows that no server starts.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CancelSource } from '@capstan/core/cancellation';
import { Registration } from '@capstan/core/contracts/capability';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { InstanceSnapshot } from '@capstan/core/routing/types';
import type { StepEnd } from '@capstan/core/workflow-payloads';
import { createFileMediaStore } from '@capstan/media-store/file-store';
import { pino } from 'pino';
import { afterAll, beforeAll } from 'vitest';
import { ConfigSchema } from '../../src/config.ts';
import type { WorkerCtx } from '../../src/context.ts';
import type { Db } from '../../src/db/connect.ts';
import { createCachedCalls } from '../../src/parts/cache/cached-calls.ts';
import { CalledOffSteps } from '../../src/parts/calls/called-off-steps.ts';
import { createInFlightSteps } from '../../src/parts/calls/in-flight-steps.ts';
import { createRunContexts } from '../../src/parts/definitions/run-context.ts';
import { createStepResults } from '../../src/parts/definitions/step-results.ts';
import { createMediaLibrary, type MediaLibrary } from '../../src/parts/media/media-library.ts';
import type { StepRequest, UnitInBatch } from '../../src/use-cases/steps/call.ts';
import { type DecideRequest, decideSteps } from '../../src/use-cases/steps/conditions.ts';
import { executeStep } from '../../src/use-cases/steps/execution.ts';
import {
  executeInline,
  type InlineBatchResult,
  type InlineRequest,
  inWorker,
} from '../../src/use-cases/steps/inline.ts';
import { useDatabase } from './database.ts';
import { aProject, type StoredRun } from './factories.ts';
import { type Instance, type InstanceOptions, startInstance } from './fleet.ts';
import { createRouterRuntime } from './router-runtime.ts';
import { waitFor } from './wait.ts';

export interface Worker {
  /** @param longestMs of a batch; default: the real limit */
  readonly inline: (longestMs?: number) => (request: InlineRequest) => Promise<InlineBatchResult>;
  readonly ctx: WorkerCtx;
  readonly execute: (run: Pick<StoredRun, 'run_id'>, step: StepOf) => Promise<StepEnd>;
  readonly decide: (request: DecideRequest) => ReturnType<typeof decideSteps>;
  /** Like its process at shutdown. */
  readonly close: () => void;
}

/** A step without dependencies. */
export const aloneInBatch: UnitInBatch = { answers: new Map(), stored: null, onAnswered: () => undefined };

export type StepOf =
  | string
  | ({
      readonly step_id: string;
      readonly round?: number;
      /** Default: 20 000. */
      readonly remainingMs?: number;
      readonly signal?: CancelSource;
      /** Default: now. */
      readonly askedAtMs?: number;
      /** Default: the step comes from the queue. */
      readonly batch?: UnitInBatch | undefined;
    } & Partial<StepRequest>);

export interface StepWorld {
  readonly db: Db;
  /** Acts as another process with empty caches. */
  readonly newWorker: () => Worker;
  readonly register: (options: InstanceOptions) => Promise<Instance>;
  /** States of the instances of a capability, as the router sees them. */
  readonly statesOf: (capability: string) => string[];
  readonly projectId: () => string;
  /** The router's view of the instances. */
  readonly fleet: () => WorkerCtx['fleet'];
  readonly media: () => MediaLibrary;
  /** The run's log: `step.waiting a[2]`. */
  readonly eventsOf: (run: Pick<StoredRun, 'run_id'>) => Promise<string[]>;
}

const escalates: WorkerCtx['openForStep'] = () =>
  Promise.reject(new Error('no step of these tests escalates'));

/** Exists from before the first test of the file until after the last. */
export function useSteps(settings: Readonly<Record<string, string>> = {}): StepWorld {
  const { db, url } = useDatabase(6);
  const instances: Instance[] = [];
  let router: Awaited<ReturnType<typeof createRouterRuntime>>;
  let project = '';
  let folder = '';
  let media: MediaLibrary;
  beforeAll(async () => {
    const config = ConfigSchema.parse({
      DATABASE_URL: url,
      DATABASE_POOL: 6,
      LOG_LEVEL: 'silent',
      ...settings,
    });
    router = await createRouterRuntime(config, pino({ level: 'silent' }));
    project = (await aProject(db)).project_id;
    folder = await mkdtemp(join(tmpdir(), 'capstan-steps-'));
    media = createMediaLibrary({ db, store: createFileMediaStore(folder), bytesPerProject: 0 });
  });
  afterAll(async () => {
    for (const instance of instances) await instance.stop();
    await router?.close();
    await rm(folder, { recursive: true, force: true });
  });

  return {
    db,
    projectId: () => project,
    fleet: () => router.ctx.fleet,
    media: () => media,
    statesOf: (capability) => router.fleet.all(capability).map(({ state }) => state),
    newWorker: () => {
      const contexts = createRunContexts(db);
      const results = createStepResults(db);
      const own = { ...router.ctx, db, contexts, results, media };
      const resultCache = createCachedCalls(own);
      const ctx: WorkerCtx = {
        ...own,
        resultCache,
        inFlightSteps: createInFlightSteps<StepEnd>(),
        calledOff: new CalledOffSteps(own),
        openForStep: escalates,
        transitions: new Map(),
      };
      return {
        ctx,
        close: resultCache.close,
        inline: (longestMs = 250) => {
          const options = { ...inWorker, longestMs };
          return (request) => executeInline(ctx, request, options);
        },
        decide: (request) => decideSteps(ctx, request),
        execute: ({ run_id }, step) => {
          const asked = typeof step === 'string' ? { step_id: step } : step;
          const { round = 1, remainingMs = 20_000, signal = new CancelSource(), batch, ...more } = asked;
          const { askedAtMs = Date.now(), ...request } = more;
          const control = {
            round,
            remainingMs,
            signal,
            askedAtMs,
            ...(batch === undefined ? {} : { batch }),
          };
          return executeStep(ctx, { run_id, revision: 0, ...request }, control);
        },
      };
    },
    register: async (options) => {
      const request = async <Body>(_method: string, _path: string, body: unknown) => {
        const answered = await router.registry.register(
          project,
          Registration.parse({ ...Object(body), shared_with: 'all' }),
        );
        return { status: 201, headers: new Headers(), body: answered as unknown as Body };
      };
      const before = [...router.fleet.all(options.name)];
      const known = new Set(before.map(({ endpoint }) => endpoint));
      const instance = await startInstance({ request }, options);
      instances.push(instance);
      const isKnown = ({ endpoint, spec_digest }: InstanceSnapshot): boolean =>
        !known.has(endpoint) && (options.deterministic === undefined || spec_digest !== null);
      await waitFor('the router to know it', () => router.fleet.all(options.name).some(isKnown));
      return instance;
    },
    eventsOf: async ({ run_id }) => {
      const rows = await db('event')
        .where({ run_id })
        .orderBy(['xid', 'id'])
        .select('type', 'step_id', 'item');
      return rows.map(({ type, step_id, item }) =>
        [type, step_id === null ? '' : ` ${step_id}`, item === null ? '' : `[${item}]`].join(''),
      );
    },
  };
}

/** The request of a run with these steps. */
export function stepsOf(
  steps: PipelineDefinition['steps'],
  more: Partial<PipelineDefinition> = {},
): { readonly definition: Partial<PipelineDefinition> } {
  return { definition: { steps, ...more } };
}
