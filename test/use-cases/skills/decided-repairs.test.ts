/** What people decide about repairs is learnt: steps that fail in the real router, reviews decided by HTTP. */

import type { RunEvent } from '@capstan/core/contracts/event';
import type { RepairIdentity, Review, ReviewDecision, ReviewSummary } from '@capstan/core/contracts/review';
import type { StepDetail } from '@capstan/core/contracts/run-step';
import type { Skill, SkillWorth } from '@capstan/core/contracts/skill';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { deletedTables, deleteOfProject, deleteOld } from '../../../src/db/deletion/deleted-tables.ts';
import { deleteKeys } from '../../../src/db/deletion/erasure.ts';
import { addRepairDecision } from '../../../src/db/review/repair-decision.ts';
import { newId } from '../../../src/parts/ids.ts';
import { readJson } from '../../support/api.ts';
import { type FailingStep, type LadderWorld, startLadderWorld } from '../../support/ladders.ts';
import { isLong } from '../../support/long.ts';
import { waitFor } from '../../support/wait.ts';

let world: LadderWorld;
let project: string;
let ana: Person;
let ben: Person;
/** What is decided about the rates of these tests. */
let identity: RepairIdentity;

interface ReviewPage {
  readonly items: readonly ReviewSummary[];
}

type Decide = (review: Review) => Promise<void>;
interface Person {
  (decision: ReviewDecision): Decide;
  readonly keyId: string;
}

beforeAll(async () => {
  world = await startLadderWorld({});
  project = await world.newProject();
  await waitFor('the worker to know the schema', async () => {
    const failed = await fail('44.1k').catch(() => null); // an unknown schema refuses nothing
    if (failed?.end.command.type !== 'end' || failed.end.command.outcome !== 'review') return false;
    const { payload } = await readReview(failed.place.escalation_id);
    const [proposal, ...others] = payload.proposals ?? [];
    if (proposal?.repair === undefined || others.length > 0) return false;
    identity = proposal.repair;
    return true;
  });
});
afterAll(() => world.close());
beforeEach(async () => {
  project = await world.newProject();
  [ana, ben] = await Promise.all([aPerson('ana'), aPerson('ben')]);
});

async function aPerson(name: string): Promise<Person> {
  const body = { name, scopes: ['run:read', 'review:decide'], projects: [project] };
  const [, { key, key_id: keyId }] = await readJson<{ key: string; key_id: string }>(
    world.call(project, '/v1/keys', { body }),
  );
  const decide = (decision: ReviewDecision) => async (review: Review) => {
    const headers = { authorization: `Bearer ${key}`, 'if-match': `"${review.version}"` };
    const path = `/v1/reviews/${review.review_id}/decision`;
    const [status, problem] = await readJson(world.api.call(path, { body: decision, headers }));
    if (status !== 200) throw new Error(JSON.stringify(problem));
  };
  return Object.assign(decide, { keyId });
}

function get<Body>(path: string): Promise<Body> {
  return readJson<Body>(world.call(project, path)).then(([, body]) => body);
}

async function readReview(escalation_id: string): Promise<Review> {
  const { review_id } = await world.escalation(project, escalation_id);
  return get<Review>(`/v1/reviews/${review_id}`);
}

/** A step with a rate that the schema refuses. @returns the end of its ladder, and its run */
async function fail(rate: string, step: Partial<FailingStep> = {}) {
  const failed = await world.failStep({ project_id: project, input: { rate }, ...step });
  return { ...failed, end: await world.climb(failed.place) };
}

/** Fails, is reviewed and decided. @returns the run, and the end of the ladder */
async function review(rate: string, decide: Decide, step: Partial<FailingStep> = {}) {
  const { run_id, place, end } = await fail(rate, step);
  expect(end.command).toMatchObject({ outcome: 'review' });
  const asked = await readReview(place.escalation_id);
  await decide(asked);
  return { run_id, asked, end: await world.climb(await world.decided(asked.review_id)) };
}

const approve = { action: 'approve' } as const;

/** Approvals of earlier runs, as they are stored. */
async function haveApproved(...people: readonly Person[]): Promise<void> {
  for (const { keyId: decided_by } of people)
    await addRepairDecision(world.api.db, {
      ...identity,
      project_id: project,
      capability: 'transcode',
      decision_id: `${newId('review')}.1.0`,
      outcome: 'for',
      run_id: newId('run'),
      decided_by,
    });
}

/** The last of three decisions alike is made, in the third run. */
async function decideThrice(): Promise<void> {
  await haveApproved(ana, ben);
  expect((await review('32k', ana(approve))).end.command).toMatchObject({ outcome: 'succeeded' });
}

async function learntSkills(): Promise<Skill[]> {
  return (await get<Skill[]>('/skills')).filter(({ source }) => source === 'decided-repair');
}

async function decisions(): Promise<readonly { outcome: string }[]> {
  return world.api
    .db('repair_decision')
    .where({ project_id: project })
    .orderBy('decision_id')
    .select('outcome');
}

test('an input that was decided alike three times is repaired automatically, and the run names the people whose decisions that follows', async () => {
  for (const [rate, person] of [
    ['44.1k', ana],
    ['48k', ben],
    ['32k', ana],
  ] as const)
    expect((await review(rate, person(approve))).end.command).toMatchObject({ outcome: 'succeeded' });
  expect(await decisions()).toEqual([{ outcome: 'for' }, { outcome: 'for' }, { outcome: 'for' }]);
  const [skill] = await learntSkills();
  const by = ['ana', 'ben'];
  expect(skill).toMatchObject({
    pattern: { job_type: 'transcode', repo_signals: [] },
    template: expect.stringMatching(/^repair coerce\.k at \/rate of schema [0-9a-f]{64}$/),
    as_decided: { by, times: 3 },
  });
  const { run_id, end } = await fail('22.05k');
  expect(end.command).toEqual({ type: 'end', outcome: 'succeeded', skill_id: skill?.id });
  const step = await get<StepDetail>(`/v1/runs/${run_id}/steps/a`);
  expect(step).toMatchObject({
    state: 'succeeded',
    output: { rate: 22_050 },
    skill_id: skill?.id,
    as_decided: { by, times: 3 },
    revisions: [{ input: { rate: 22_050 }, source: skill?.id }],
  });
  // An event is listed when no older transaction of the database is open.
  const escalated = await waitFor('the event of the repair', async () => {
    const { items } = await get<{ items: RunEvent[] }>(`/v1/runs/${run_id}/events`);
    return items.find(({ type }) => type === 'step.escalated');
  });
  expect(escalated.data).toMatchObject({
    state: 'succeeded',
    skill_id: skill?.id,
    as_decided: { by, times: 3 },
  });
  expect((await get<ReviewPage>(`/v1/reviews?run_id=${run_id}`)).items).toEqual([]);
  expect(await get<SkillWorth>(`/skills/${skill?.id}/worth`)).toMatchObject({ uses: 1, reviews_avoided: 1 });
});

test('a person whose key is erased is named no more', async () => {
  await decideThrice();
  const { db } = world.api;
  const [key] = await db('api_key')
    .where({ name: 'ben' })
    .whereRaw('? = any (projects)', [project])
    .pluck('key_id');
  await db.transaction((trx) => deleteKeys(trx, [key]));
  expect(await learntSkills()).toMatchObject([{ as_decided: { by: ['ana', 'erased'], times: 3 } }]);
});

test('a review shows the identity of its proposal in words', async () => {
  const { asked } = await review('44.1k', ana(approve));
  expect(asked.payload.proposals).toMatchObject([
    { input: { rate: 44_100 }, repair: { operation: 'coerce.k', place: '/rate' } },
  ]);
});

test('another kind of mistake at the same place, and the same kind under another schema, ask a person', async () => {
  await decideThrice();
  expect((await fail('22,050')).end.command).toMatchObject({ outcome: 'review' });
  const [skill] = await learntSkills();
  const template = skill?.template?.replace(/[0-9a-f]{64}$/, '0'.repeat(64)) ?? '';
  await world.api.db.raw('alter table skill_version disable trigger skill_version_append_only');
  await world.api.db('skill_version').where({ skill_id: skill?.id }).update({ template });
  await world.api.db.raw('alter table skill_version enable trigger skill_version_append_only');
  expect((await fail('22.05k')).end.command).toMatchObject({ outcome: 'review' });
});

const gaveAnother = (person: Person): Decide => person({ action: 'edit', input: { rate: 8_000 } });

/** What speaks against a repair: core/repair/decided-repairs.test.ts. */
test.each<readonly [string, (person: Person) => Decide]>([
  ['rejected it', (person) => person({ action: 'reject' })],
  ...(isLong ? [['gave another input', gaveAnother] as const] : []),
])('one person who %s is enough for another review', async (_, decide) => {
  await haveApproved(ana, ben);
  await review('96k', decide(ben));
  await review('48k', ana(approve));
  expect(await decisions()).toHaveLength(4);
  expect(await learntSkills()).toEqual([]);
  expect((await fail('22.05k')).end.command).toMatchObject({ outcome: 'review' });
});

test('a proposal that fails when it is executed is evidence against it, and the review opens again', async () => {
  const { end, asked } = await review('44.101k', ana(approve));
  expect(end.command).toMatchObject({ outcome: 'review', review_id: asked.review_id });
  expect(await decisions()).toEqual([{ outcome: 'against' }]);
  await ben({ action: 'edit', input: { rate: 44_100 } })(await readReview(end.escalation_id));
  const last = await world.climb(await world.decided(asked.review_id));
  expect(last.command).toMatchObject({ outcome: 'succeeded' });
  expect(await decisions()).toEqual([{ outcome: 'against' }]);
});

test('an input that a person types is the proposal that it equals', async () => {
  await review('44.1k', ana({ action: 'edit', input: { rate: 44_100 } }));
  expect(await decisions()).toEqual([{ outcome: 'for' }]);
});

test('a decision that is not to be remembered, advice and a repetition are no evidence', async () => {
  await review('44.1k', ana({ ...approve, remember: false }));
  await review('48k', ana({ action: 'reject', remember: false }));
  expect(await decisions()).toEqual([]);
});

test('a retired skill is applied no more, and decisions do not bring it back', async () => {
  await decideThrice();
  const [skill] = await learntSkills();
  const [status] = await readJson(world.call(project, `/skills/${skill?.id}/retire`, { body: {} }));
  expect(status).toBe(200);
  await review('22.05k', ben(approve));
  expect((await fail('16k')).end.command).toMatchObject({ outcome: 'review' });
  expect(await learntSkills()).toEqual([]);
});

test('a decision against a learnt repair flags its skill, and a review about it is opened', async () => {
  await decideThrice();
  const [skill] = await learntSkills();
  // A step that always needs a person is not repaired at level 0.
  await review('96k', ben({ action: 'reject' }), { step: { retry: { max: 0 } } });
  expect(await get<Skill>(`/skills/${skill?.id}`)).toMatchObject({ flagged: true });
  const { items } = await get<ReviewPage>('/v1/reviews?kind=skill');
  expect(items).toMatchObject([
    { skill_id: skill?.id, reason: 'a person decided against a repair that is a skill for transcode' },
  ]);
  expect((await fail('22.05k')).end.command).toMatchObject({ outcome: 'review' });
});

test('a learnt repair that fails once is flagged', async () => {
  await decideThrice();
  const [skill] = await learntSkills();
  expect((await fail('44.101k')).end.command).toMatchObject({ outcome: 'review' }); // odd, which is refused
  expect(await get<Skill>(`/skills/${skill?.id}`)).toMatchObject({ flagged: true, failure_count: 1 });
});

test.each([
  ['off', 'review'],
  ['propose', 'succeeded'],
] as const)('a step with repair: %s ends with %s', async (repair, outcome) => {
  await decideThrice();
  const { end } = await fail('22.05k', { step: { escalate: { repair } } });
  expect(end.command).toMatchObject({ outcome });
});

test('decisions at the same time make one skill', async () => {
  await review('44.1k', ana(approve)); // its ladder is over: of several, one would wait for another
  const failed = await Promise.all(['48k', '32k', '24k'].map((rate) => fail(rate)));
  const asked = await Promise.all(failed.map(({ place }) => readReview(place.escalation_id)));
  for (const one of asked) await ben(approve)(one);
  const ends = await Promise.all(
    asked.map(async ({ review_id }) => world.climb(await world.decided(review_id))),
  );
  expect(ends.map(({ command }) => command)).toMatchObject(ends.map(() => ({ outcome: 'succeeded' })));
  expect(await learntSkills()).toMatchObject([{ as_decided: { by: ['ana', 'ben'], times: 4 } }]);
});

test('a project decides for itself, and an erased one leaves nothing', async () => {
  await decideThrice();
  const own = project;
  project = await world.newProject();
  expect((await fail('22.05k')).end.command).toMatchObject({ outcome: 'review' });
  const { db } = world.api;
  for (const table of deletedTables) {
    if (table.table !== 'repair_decision') continue;
    expect(await deleteOfProject(db, table, { projectId: own, limit: 100 })).toMatchObject({
      counts: { repair_decision: 3 },
    });
  }
  expect(await db('repair_decision').where({ project_id: own })).toEqual([]);
});

test('old decisions are deleted, except those that an applied skill follows', async () => {
  await decideThrice();
  await review('96k', ben({ action: 'reject' }), { step: { retry: { max: 0 } } });
  const { db } = world.api;
  const table = deletedTables.find((one) => one.table === 'repair_decision');
  if (table === undefined) throw new Error('no rule for decisions');
  const soon = new Date(Date.now() + 3_600_000);
  const page = { isTrial: false, isTold: true, endedBefore: soon, upTo: 'rev_z', after: '', limit: 1_000 };
  const { lines } = await deleteOld(db, table, page);
  expect(lines.filter((line) => line.includes(project))).toHaveLength(1);
  expect(await decisions()).toEqual([{ outcome: 'for' }, { outcome: 'for' }, { outcome: 'for' }]);
});
