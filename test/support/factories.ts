/**
 * Rows for tests, with sensible defaults: `aProject`, `anInstance` and `aRun` insert their rows and return them;
 * `aClaim` and `anEnd` are arguments only. Each takes overrides.
 */
import { randomUUID } from 'node:crypto';
import type { ProjectKey } from '@capstan/core/call/caller';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { JsonObject, Priority } from '@capstan/core/contracts/primitives';
import { insertProject, type ProjectRow } from '../../src/db/access/project.ts';
import {
  type AttemptEnd,
  type Claim,
  type ClaimResult,
  settleAndClaim,
} from '../../src/db/attempt/attempt.ts';
import type { Db } from '../../src/db/connect.ts';
import type { InstanceColumns, InstanceRow } from '../../src/db/instance/instance.ts';
import { insertRuns } from '../../src/db/run/run.ts';
import type { RunOrigin } from '../../src/db/run/run-columns.ts';
import type { SlotWish } from '../../src/parts/fleet/slot-waiters.ts';
import { newId, newToken } from '../../src/parts/ids.ts';

/** A key without limits that makes calls. */
export function aCallingKey(key: Partial<ProjectKey> = {}): ProjectKey {
  const { key_id = 'key_test' } = key;
  return {
    key_id,
    project_id: 'prj_test',
    scopes: [`key:${key_id}`],
    names: null,
    token_rates: [],
    onBudget: null,
    ...key,
  };
}

export function aProject(
  db: Db,
  project: { name?: string; timezone?: string; daily_limit_nano?: bigint } = {},
): Promise<ProjectRow> {
  return insertProject(db, {
    project_id: newId('project'),
    name: 'trailers',
    timezone: 'UTC',
    daily_limit_nano: 0n,
    ...project,
  });
}

/** Up, free, local and idle, at an endpoint of its own; it serves all projects. */
export async function anInstance(
  db: Db,
  instance: Partial<Omit<InstanceColumns, 'rate_usd'>> & { readonly rate_usd?: number | string } = {},
): Promise<InstanceColumns> {
  const owner_project = instance.owner_project ?? (await aProject(db)).project_id;
  const endpoint = instance.endpoint ?? `http://${randomUUID()}.test`;
  const rows: InstanceColumns[] = await db('instance')
    .insert({
      instance_id: newId('instance'),
      name: 'concat',
      version: '1.0.0',
      spec_url: `${endpoint}/spec`,
      health_url: `${endpoint}/health`,
      cost_type: 'free',
      rate_usd: 0,
      tags: ['local'],
      max_concurrency: 1,
      state: 'up',
      ...instance,
      owner_project,
      endpoint,
      shared_with: JSON.stringify(instance.shared_with ?? 'all'),
      known_digest: instance.spec_digest ?? null,
    })
    .returning('*');
  return rows[0] as InstanceColumns;
}

export interface StoredRun {
  readonly run_id: string;
  readonly project_id: string;
  readonly job_id: string;
  readonly digest: string;
  readonly definition: PipelineDefinition;
}

export interface RunOverrides extends RunOrigin {
  readonly rerun_of?: string;
  readonly specs?: Readonly<Record<string, string>>;
  readonly project_id?: string;
  readonly definition?: Partial<PipelineDefinition>;
  readonly job?: JsonObject;
  readonly priority?: Priority;
  readonly budget_ceiling_usd?: number | null;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Queued, with the sequential steps `a`, `b` and `c`. */
export async function aRun(db: Db, overrides: RunOverrides = {}): Promise<StoredRun> {
  const { definition: changes, job = {}, ...rest } = overrides;
  const definition: PipelineDefinition = {
    pipeline: 'trailer',
    version: '1.0.0',
    steps: [
      { id: 'a', capability: 'concat' },
      { id: 'b', capability: 'concat', depends_on: ['a'] },
      { id: 'c', capability: 'concat', depends_on: ['b'] },
    ],
    ...changes,
  };
  const run_id = newId('run');
  const job_id = newId('job');
  const digest = `test-${run_id}`;
  const project_id = rest.project_id ?? (await aProject(db)).project_id;
  await db('definition').insert({ digest, body: JSON.stringify(definition) });
  await db('job').insert({ job_id, project_id, body: JSON.stringify(job) });
  const run = { run_id, job_id, pipeline: definition.pipeline, version: definition.version, digest };
  await insertRuns(db, {
    runs: [{ ...run, priority: 'standard', budget_ceiling_usd: null, labels: {}, ...rest, project_id }],
  });
  return { run_id, project_id, job_id, digest, definition };
}

/** A claim for a step of a run on an instance, free and with a lease of 30 s. */
export function aClaim(
  { run_id, project_id }: Pick<StoredRun, 'run_id' | 'project_id'>,
  instance: Pick<InstanceRow, 'instance_id' | 'endpoint' | 'cost_type' | 'rate_usd'> &
    Partial<Pick<InstanceRow, 'host'>>,
  { step_id = 'a', ...claim }: Partial<Claim> & { readonly step_id?: string } = {},
): Claim {
  return {
    attempt_id: newId('attempt'),
    token: newToken(),
    key: `${run_id}.${step_id}.0.0`,
    project_id,
    step: { run_id, step_id, item: 0, revision: 0 },
    run_id: claim.step === null ? null : run_id,
    capability: 'concat',
    instance_id: instance.instance_id,
    is_first: false,
    begins_step: false,
    known_failures: [instance.instance_id],
    must_be_idle: false,
    has_host: instance.host != null,
    cost_type: instance.cost_type,
    rate_usd: Number(instance.rate_usd),
    lease_ms: 30_000,
    reserved_nano: 0n,
    risk_nano: 0n,
    outlook: null,
    decision: {
      decision_id: newId('decision'),
      chosen: instance.endpoint,
      reason: 'the only one',
      candidates: [],
      reserved_usd: 0,
      settled_usd: null,
    },
    inputs: { request: {}, seed: 0, instances: [] },
    ...claim,
  };
}

/** The success of a claimed attempt. */
export function anEnd(
  { attempt_id, token, step }: Pick<Claim, 'attempt_id' | 'token' | 'step'>,
  end: Partial<AttemptEnd> = {},
): AttemptEnd {
  return {
    attempt_id,
    token,
    state: 'settled',
    ambiguity: 'answered',
    counted: false,
    has_failed: false,
    settled_nano: 0n,
    certainty: 'exact',
    duration_ms: 12.5,
    asked_pause_ms: null,
    is_stopped: false,
    error: null,
    step_state: 'succeeded',
    output: { path: 'media://out.mp4' },
    event_data: { duration_ms: 12.5 },
    model: null,
    tokens: null,
    content: null,
    step,
    keeps: null,
    ...end,
  };
}

/** Durable, by one statement. */
export async function claimAttempts(db: Db, claims: readonly Claim[]): Promise<readonly ClaimResult[]> {
  return (await settleAndClaim(db, { ends: [], claims }, true)).claims;
}

export async function claimAttempt(db: Db, claim: Claim): Promise<ClaimResult> {
  return (await claimAttempts(db, [claim]))[0] as ClaimResult;
}

/** Durable, by one statement. @returns per end: false when a later attempt owns the step */
export async function settleAttempts(db: Db, ends: readonly AttemptEnd[]): Promise<boolean[]> {
  return (await settleAndClaim(db, { ends, claims: [] }, true)).ends.map((result) => result === 'settled');
}

export async function settleAttempt(db: Db, end: AttemptEnd): Promise<boolean> {
  return (await settleAttempts(db, [end]))[0] as boolean;
}

/** Of a call that begins to wait for a slot now. */
export function aSlotWish(capability: string, wish: Partial<SlotWish> = {}): SlotWish {
  return { capability, line: capability, key: null, sinceMs: performance.now(), ...wish };
}
