/**
 * Takes a run: one transaction writes the job, the run and the stored answer, so that a repeated request with
 * the same Idempotency-Key meets one run, also when the process died right after answering.
 */
import { LRUCache } from 'lru-cache';
import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import type { Json } from '../../contracts/primitives.ts';
import type { Run, RunRequest } from '../../contracts/run.ts';
import type { Db } from '../../db/connect.ts';
import { findAnswer, insertAnswer } from '../../db/idempotency.ts';
import { insertJob } from '../../db/job.ts';
import { insertRun, type NewRun } from '../../db/run.ts';
import { AppError } from '../../errors.ts';
import { newId } from '../ids.ts';
import { bindJobMedia } from '../jobs/bind-job-media.ts';
import type { JobService } from '../jobs/job-service.ts';
import { digestDefinition } from '../pipelines/definition-digest.ts';
import type { PipelineService } from '../pipelines/pipeline-service.ts';
import { storeDefinition } from '../pipelines/store-definition.ts';
import { requireStartable } from './require-startable.ts';
import { newRunView } from './run-view.ts';

export interface Idempotency {
  readonly key: string;
  readonly bodySha256: Buffer;
}

export interface SubmitDependencies {
  readonly db: Db;
  readonly jobs: Pick<JobService, 'exists'>;
  readonly pipelines: Pick<PipelineService, 'get' | 'getVersion' | 'requireSound'>;
}

export type SubmitRun = (
  projectId: string,
  request: RunRequest,
  idempotency: Idempotency | null,
) => Promise<{ readonly run: Run; readonly replayed: boolean }>;

interface ChosenDefinition {
  readonly definition: PipelineDefinition;
  readonly digest: string;
  readonly isStored: boolean;
}

const requestName = 'POST /v1/runs';

export const createSubmitRun = (dependencies: SubmitDependencies): SubmitRun => {
  const { db } = dependencies;
  const startableDigests = new LRUCache<string, true>({ max: 1_000 });

  const chooseDefinition = async (projectId: string, request: RunRequest): Promise<ChosenDefinition> => {
    const { pipelines } = dependencies;
    if (request.definition !== undefined) {
      const digest = digestDefinition(request.definition);
      if (!startableDigests.has(digest)) pipelines.requireSound(request.definition);
      return { definition: request.definition, digest, isStored: false };
    }
    const name = request.pipeline as string;
    const { definition, digest } =
      request.version === undefined
        ? await pipelines.get(projectId, name)
        : await pipelines.getVersion(projectId, name, request.version);
    return { definition, digest, isStored: true };
  };

  const create = async (
    projectId: string,
    request: RunRequest,
    idempotency: Idempotency | null,
  ): Promise<Run | null> => {
    const { definition, digest, isStored } = await chooseDefinition(projectId, request);
    if (!startableDigests.has(digest)) requireStartable(definition);
    startableDigests.set(digest, true);
    const jobId = request.job_id ?? newId('job');
    if (request.job_id !== undefined) await requireJob(dependencies.jobs, projectId, request.job_id);
    const row: NewRun = {
      run_id: newId('run'),
      project_id: projectId,
      job_id: jobId,
      pipeline: definition.pipeline,
      version: definition.version,
      digest,
      priority: request.priority ?? definition.defaults?.priority ?? 'standard',
      budget_ceiling_usd: request.budget_ceiling_usd ?? null,
      labels: { ...definition.labels, ...request.labels },
    };
    const run = newRunView(row, definition);
    return db.transaction(async (trx) => {
      if (idempotency !== null) {
        const { key, bodySha256: body_sha256 } = idempotency;
        const stored = { project_id: projectId, request: requestName, key, body_sha256 };
        if (!(await insertAnswer(trx, stored, 202, run as unknown as Json))) return null;
      }
      if (!isStored) await storeDefinition(trx, definition);
      if (request.job_id === undefined) {
        const job = bindJobMedia(request.job ?? {}, jobId);
        await insertJob(trx, { project_id: projectId, job_id: jobId }, job);
      }
      await insertRun(trx, row);
      return run;
    });
  };

  const replay = async (projectId: string, { key, bodySha256 }: Idempotency): Promise<Run | null> => {
    const stored = await findAnswer(db, { project_id: projectId, request: requestName, key });
    if (stored === undefined) return null;
    if (!stored.body_sha256.equals(bodySha256)) {
      throw new AppError('idempotency_key_reuse', `Idempotency-Key "${key}" was used with another body`);
    }
    return stored.answer as unknown as Run;
  };

  return async (projectId, request, idempotency) => {
    const known = idempotency === null ? null : await replay(projectId, idempotency);
    if (known !== null) return { run: known, replayed: true };
    const run = await create(projectId, request, idempotency);
    if (run !== null) return { run, replayed: false };
    const winner = await replay(projectId, idempotency as Idempotency);
    if (winner === null) throw new AppError('idempotency_in_progress', 'the first request is being handled');
    return { run: winner, replayed: true };
  };
};

const requireJob = async (jobs: Pick<JobService, 'exists'>, projectId: string, jobId: string) => {
  if (!(await jobs.exists(projectId, jobId))) throw new AppError('not_found', `there is no job ${jobId}`);
};
