/** A project with a row of its own in every table, each with its name in it. */
import { Readable } from 'node:stream';
import { insertKey } from '../../../src/db/access/api-key.ts';
import { insertAudit } from '../../../src/db/access/audit.ts';
import type { Db } from '../../../src/db/connect.ts';
import { setScopedBudget } from '../../../src/db/money/scoped-budget.ts';
import { newId } from '../../../src/parts/ids.ts';
import type { MediaLibrary } from '../../../src/parts/media/media-library.ts';
import {
  aCallingKey,
  aClaim,
  anEnd,
  anInstance,
  aProject,
  aRun,
  claimAttempt,
  settleAttempt,
} from '../../support/factories.ts';

type World = { readonly db: Db; readonly media: MediaLibrary; readonly mark: string };

async function fillCalls({ db, media, mark }: World, project_id: string) {
  const instance = await anInstance(db, {
    owner_project: project_id,
    name: `cap-${mark}`,
    cost_type: 'per_call',
    rate_usd: 1e-6,
    max_concurrency: 1_000,
    host: mark,
    host_slots: 1_000,
    takes: 1,
  });
  await db('load_time').insert({ owner_project: project_id, name: `cap-${mark}`, key: mark });
  await db('host').insert({ owner_project: project_id, name: mark, slots: 1_000 });
  const definition = { pipeline: `pipe-${mark}`, description: mark };
  const run = await aRun(db, { project_id, definition, job: { mark }, labels: { mark } });
  const child = await aRun(db, {
    project_id,
    definition,
    parent_run_id: run.run_id,
    parent_step_id: 's',
    parent_item: 0,
    parent_revision: 0,
    depth: 1,
    parent_workflow_id: `${mark}/${run.run_id}`,
  });
  for (const of of [run, child]) {
    const claim = aClaim(of, instance, { reserved_nano: 1_000n });
    await claimAttempt(db, claim);
    await settleAttempt(db, anEnd(claim, { settled_nano: 700n, output: { mark } }));
  }
  await db('step').insert({
    run_id: run.run_id,
    step_id: 'waits',
    state: 'waiting',
    awaiting: 'event',
    awaited_event: `${project_id}/${mark}`,
    awaited_key: mark,
    wait_until: new Date(Date.now() + 60_000),
  });
  const budget = {
    scope: `label:team=${mark}`,
    period: 'month',
    limitNano: 1_000_000_000n,
    soft: 0.8,
  } as const;
  await setScopedBudget(db, project_id, budget);
  const scopes = [budget.scope];
  const loose = aClaim(run, instance, { step: null, key: newId('call'), reserved_nano: 500n, scopes });
  await claimAttempt(db, loose);
  await db('project')
    .where({ project_id })
    .update({ content_days: 7, content_since: new Date(0) });
  const content = { input: { mark }, output: { mark } };
  await settleAttempt(db, anEnd(loose, { settled_nano: 300n, model: mark, content }));
  await media.put({ job_id: run.job_id, file: 'in.txt' }, Readable.from([mark]), {
    contentType: 'text/plain',
    limitBytes: 1_000,
  } as Parameters<MediaLibrary['put']>[2]);
  return { run, child };
}

async function fillLearning({ db, mark }: World, project_id: string, run_id: string): Promise<void> {
  const escalation_id = newId('escalation');
  const open = { project_id, job_type: mark, prompt: mark, ladder: {}, escalation_level: 0, model_spec: {} };
  await db('escalation').insert({ ...open, escalation_id, caller: aCallingKey() });
  const ofStep = newId('escalation');
  await db('escalation').insert({ ...open, escalation_id: ofStep, run_id, step_id: 'a', item: 0 });
  const place = { run_id, step_id: 'a', item: 0 };
  await db('step_revision').insert({
    ...place,
    revision: 1,
    input: { mark },
    source: mark,
    escalation_id: ofStep,
    transition: 1,
    choice: 0,
  });
  const skill_id = newId('skill');
  await db('skill').insert({
    skill_id,
    project_id,
    job_type: mark,
    trust: 'trusted',
    source: mark,
    content_sha256: Buffer.from(mark),
    base_success: 0,
    base_failure: 0,
    success_count: 0,
    failure_count: 0,
    last_used_at: new Date(),
    created_at: new Date(),
  });
  await db('skill_version').insert({
    skill_id,
    version: 1,
    repo_signals: [],
    error_patterns: [],
    instructions: mark,
    author: mark,
  });
  await db('skill_use').insert({ skill_id, version: 1, escalation_id, level: 0, outcome: 'success' });
  await db('repair_decision').insert({
    decision_id: `${newId('review')}.1.0`,
    project_id,
    capability: mark,
    operation: 'coerce.dB',
    place: `/${mark}`,
    schema_sha256: Buffer.from(mark),
    outcome: 'for',
    run_id,
    decided_by: mark,
    skill_id,
  });
  const review = { project_id, kind: 'skill', reason: mark, due_at: new Date(), payload: { mark }, skill_id };
  await db('review').insert({ ...review, review_id: newId('review') });
  await db('advice_answer').insert({ project_id, request_sha256: Buffer.from(mark), answer: { mark } });
  await db('cached_result').insert({
    ...place,
    project_id,
    key: Buffer.from(mark),
    pipeline: mark,
    capability: mark,
    led_at: new Date(),
    expires_at: new Date(),
  });
}

async function fillOffice({ db, mark }: World, project_id: string, other: string): Promise<void> {
  const key = { name: mark, secret_sha256: Buffer.from(mark), scopes: ['admin'] as const, created_by: null };
  const own = { ...key, key_id: `own-${mark}`, projects: [project_id], expires_at: null };
  await insertKey(db, own);
  await insertKey(db, {
    ...own,
    key_id: `shared-${mark.length}`,
    name: 'shared',
    secret_sha256: Buffer.from(`shared-${mark.length}`),
    projects: [other, project_id],
  });
  await db('session').insert({
    secret_sha256: Buffer.from(`s${mark}`),
    session_id: newId('session'),
    key_id: own.key_id,
    expires_at: new Date(Date.now() + 60_000),
  });
  await db('login_code').insert({
    code_sha256: Buffer.from(mark),
    key_id: own.key_id,
    expires_at: new Date(),
  });
  const person = { ...own, key_id: `person-${mark.length}`, projects: [project_id], name: 'Ada' };
  await insertKey(db, { ...person, secret_sha256: Buffer.from(`person-${mark.length}`) });
  await db('person').insert({
    key_id: person.key_id,
    issuer: 'https://id.test',
    subject: mark.length,
    holds_every_project: false,
    grants: JSON.stringify([{ scopes: ['run:read'], projects: [project_id, other] }]),
  });
  const entry = { actor: own.key_id, action: 'skill.retired', subject: mark, data: { mark } };
  await insertAudit(db, { ...entry, project_id });
  await insertAudit(db, {
    ...entry,
    subject: 'x',
    project_id: other,
    data: { projects: [project_id, other] },
  });
  await db('secret').insert({
    project_id,
    name: mark,
    capabilities: ['*'],
    hosts: [],
    sealed: Buffer.from(mark),
    key_id: mark,
    set_by: mark,
  });
  await db('model_alias').insert({ project_id, name: mark, capability: 'model.fast', set_by: mark });
  await db('cached_answer').insert({
    project_id,
    key: Buffer.from(mark),
    capability: mark,
    attempt_id: mark,
    instance_id: mark,
    endpoint: mark,
    cost_nano: 1,
    output: { mark },
    stored_at: new Date(),
    expires_at: new Date(),
  });
  await db('idempotency').insert({
    project_id,
    request: 'POST /x',
    key: mark,
    body_sha256: Buffer.from(mark),
    status: 200,
    answer: { mark },
  });
  const webhook_id = newId('webhook');
  await db('webhook').insert({
    webhook_id,
    project_id,
    url: mark,
    events: ['run.failed'],
    secret: mark,
    created_by: mark,
  });
  const delivery = {
    delivery_id: newId('delivery'),
    webhook_id,
    event: 'run.failed',
    subject: mark,
    payload: { mark },
  };
  await db('webhook_delivery').insert(delivery);
  const hook_id = newId('hook');
  const hook = { hook_id, project_id, name: mark, body: { mark }, secret: mark, created_by: mark };
  await db('hook').insert(hook);
  const received = {
    delivery_id: newId('received'),
    hook_id,
    outcome: 'failed',
    headers: { mark },
    bytes: 2,
  };
  await db('hook_delivery').insert({ ...received, body: { mark } });
  const event = { event_id: mark, project_id, name: mark, key: mark, sender_id: mark, sent_by: mark };
  await db('outside_event').insert({ ...event, payload: { mark }, bytes: 2 });
  const schedule_id = newId('schedule');
  const body = { name: mark, pipeline: mark };
  await db('leaving_job').insert({ job_id: newId('job'), project_id });
  await db('schedule').insert({
    schedule_id,
    project_id,
    workflow_id: `${mark}/${schedule_id}`,
    created_by: mark,
    name: mark,
    body,
  });
  const range = { from_at: new Date(), until_at: new Date(), at_once: 1, moments: 1 };
  const backfill_id = newId('backfill');
  await db('backfill').insert({ backfill_id, project_id, schedule_id, created_by: mark, ...range });
  const gap = { gap_id: newId('gap'), schedule_id, outcome: 'missed', reason: mark, count: 1, moments: [] };
  await db('schedule_gap').insert(gap);
}

/** @returns its id, and that of its key */
export async function aFullProject(world: World, other: string) {
  const { db, mark } = world;
  const { project_id } = await aProject(db, { name: mark });
  const { run, child } = await fillCalls(world, project_id);
  await fillLearning(world, project_id, run.run_id);
  await fillOffice(world, project_id, other);
  const { digest } = run;
  await db('pipeline_version').insert({ project_id, pipeline: mark, version: '1.0.0', digest });
  await db('pipeline_alias').insert({ project_id, pipeline: mark, alias: 'live', version: '1.0.0' });
  const name = `cap-${mark}`;
  await db('publisher').insert({ name, projects: [project_id] });
  await db('capability_spec').insert({ name, version: '1.0.0', digest: mark, spec: { mark } });
  return { project_id, run, child, key_id: `own-${mark}` };
}
