/**
 * One side of the replay: the real services of a worker and the real router on a database of its own. Each failure is a
 * step that fails and climbs its ladder to the end, as its workflow would; no review is opened in the end.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { CancelSource } from '@capstan/core/cancellation';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Advanced } from '@capstan/core/workflow-payloads';
import { pino } from 'pino';
import { ConfigSchema } from '../../src/config.ts';
import { insertProject } from '../../src/db/access/project.ts';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { insertRuns } from '../../src/db/run/run.ts';
import { newId } from '../../src/parts/ids.ts';
import { createWorkerRuntime } from '../../src/processes/worker-runtime.ts';
import { advanceLadder } from '../../src/use-cases/escalation/ladder/transition.ts';
import { executeStep } from '../../src/use-cases/steps/execution.ts';
import { createRouterRuntime } from '../../test/support/router-runtime.ts';
import type { Failure } from './failures.ts';
import { startInstances } from './instances.ts';

export interface SideOptions {
  readonly databaseUrl: string;
  readonly failures: readonly Failure[];
  readonly seed: number;
  /** Else every skill is retired as soon as it is made. */
  readonly learns: boolean;
  readonly progress: (done: number) => void;
}

/** How one failure ended. */
export interface Played {
  readonly failure: Failure;
  readonly solved: boolean;
  readonly modelCalls: number;
  readonly usd: number;
  /** Without a model, by an input that the capability took and that was not the right one. */
  readonly isWrong: boolean;
}

export interface SideResult {
  readonly played: readonly Played[];
  readonly skills: number;
  readonly flagged: number;
  readonly seconds: number;
}

function config(databaseUrl: string) {
  return ConfigSchema.parse({ DATABASE_URL: databaseUrl, DATABASE_POOL: 6, LOG_LEVEL: 'silent' });
}
const logger = pino({ level: 'silent' });

async function register(
  { databaseUrl }: SideOptions,
  projectId: string,
  { registrations }: Awaited<ReturnType<typeof startInstances>>,
): Promise<void> {
  const { registry, close } = await createRouterRuntime(config(databaseUrl), logger);
  for (const registration of registrations) await registry.register(projectId, registration);
  const isKnown = async (name: string): Promise<boolean> =>
    (await registry.get(name)).instances.every(({ spec_digest }) => spec_digest !== null);
  for (const { name } of registrations) while (!(await isKnown(name))) await pause(50);
  await close();
}

function definitionOf({ kind, original }: Failure): PipelineDefinition {
  return {
    pipeline: 'replay',
    version: '1.0.0',
    steps: [{ id: 'step', capability: kind.capability, input: original, escalate: { on_exhausted: 'fail' } }],
  };
}

async function insertFailingRun(db: Db, project_id: string, failure: Failure): Promise<string> {
  const [run_id, job_id] = [newId('run'), newId('job')];
  const body = JSON.stringify(definitionOf(failure));
  await db('definition').insert({ digest: run_id, body });
  await db('job').insert({ job_id, project_id, body: '{}' });
  await insertRuns(db, {
    runs: [
      {
        run_id,
        project_id,
        job_id,
        pipeline: 'replay',
        version: '1.0.0',
        digest: run_id,
        priority: 'standard',
        budget_ceiling_usd: null,
        labels: {},
      },
    ],
  });
  return run_id;
}

type Worker = Awaited<ReturnType<typeof createWorkerRuntime>>;

async function climb({ ctx }: Worker, run_id: string): Promise<Advanced> {
  const control = { round: 1, remainingMs: 60_000, signal: new CancelSource() };
  const request = { run_id, step_id: 'step', revision: 0, escalates: true };
  const end = await executeStep(ctx, request, control);
  if (end.kind !== 'escalated') throw new Error(`a step was to escalate: ${JSON.stringify(end)}`);
  let at: Advanced = end.place;
  while (at.command.type !== 'end') {
    at = await advanceLadder(ctx, { ...at, signal: new CancelSource() });
    if (at.delay_ms !== undefined) throw new Error(`a ladder was held up: ${JSON.stringify(at)}`);
  }
  return at;
}

interface CallsRow {
  readonly escalation_id: string;
  readonly calls: number;
  readonly usd: number;
}

async function readCalls(db: Db): Promise<ReadonlyMap<string, CallsRow>> {
  const { rows } = await db.raw<{ rows: CallsRow[] }>(
    `select split_part(key, '.', 1) as escalation_id, count(*)::int as calls, sum(settled_nano)::float8 / 1e9 as usd
     from attempt where key like 'esc\\_%' group by 1`,
  );
  return new Map(rows.map((row) => [row.escalation_id, row]));
}

async function countSkills(db: Db): Promise<Pick<SideResult, 'skills' | 'flagged'>> {
  const { rows } = await db.raw<{ rows: [Pick<SideResult, 'skills' | 'flagged'>] }>(
    `select count(*)::int as skills, (count(*) filter (where flagged_at is not null))::int as flagged from skill`,
  );
  return rows[0];
}

export async function playSide(options: SideOptions): Promise<SideResult> {
  const { databaseUrl, failures, seed, learns, progress } = options;
  const instances = await startInstances(failures, seed);
  const worker = await createWorkerRuntime(config(databaseUrl), logger);
  const db = connectDatabase(databaseUrl, 2);
  const project_id = newId('project');
  await insertProject(db, { project_id, name: 'replay', timezone: 'UTC', daily_limit_nano: 10n ** 15n });
  await register(options, project_id, instances);
  await pause(1_500); // until the worker has noticed them
  const startedAt = performance.now();
  const ends: Advanced[] = [];
  for (const [index, failure] of failures.entries()) {
    ends.push(await climb(worker, await insertFailingRun(db, project_id, failure)));
    if (!learns) await db('skill').where({ state: 'active' }).update({ state: 'retired' });
    progress(index + 1);
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  const calls = await readCalls(db);
  const played = failures.map((failure, index): Played => {
    const { escalation_id, command } = ends[index] as Advanced;
    const { calls: modelCalls = 0, usd = 0 } = calls.get(escalation_id) ?? {};
    const solved = command.type === 'end' && command.outcome === 'succeeded';
    const isWrong = solved && modelCalls === 0 && instances.taken.get(failure) === false;
    return { failure, solved, modelCalls, usd, isWrong };
  });
  const result = { played, ...(await countSkills(db)), seconds };
  await worker.close();
  await db.destroy();
  await instances.close();
  return result;
}
