import type { Scope } from '@capstan/core/contracts/access';
import type { ReviewDecision } from '@capstan/core/contracts/review';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { listAudit } from '../../../src/db/access/audit.ts';
import { connectDatabase, type Db } from '../../../src/db/connect.ts';
import { findSkill, flagSkill } from '../../../src/db/skill.ts';
import { applySkillDecision } from '../../../src/use-cases/reviews/subject-decisions.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { aProject } from '../../support/factories.ts';
import { aStoredSkill } from '../skills/rows.ts';

let database: TestDatabase;
let db: Db;

beforeAll(async () => {
  database = await createTestDatabase();
  db = connectDatabase(database.url, 4);
});
afterAll(async () => {
  await db.destroy();
  await database.drop();
});

async function aFlaggedSkill() {
  const { project_id } = await aProject(db);
  const skill_id = await aStoredSkill(db, project_id, {
    repo_signals: ['cap:tts'],
    error_patterns: ['rate'],
  });
  await flagSkill(db, skill_id);
  const decide = (decision: ReviewDecision, scopes: Scope[] = ['review:decide']) => {
    const caller = { project_id, key_id: 'key_2', projects: [project_id], scopes: new Set(scopes) };
    return db.transaction((trx) => applySkillDecision(trx, { skill_id, project_id, decision }, caller));
  };
  const read = () => findSkill(db, project_id, skill_id);
  const actions = async () => (await listAudit(db, project_id, { limit: 9 })).map(({ action }) => action);
  return { project_id, skill_id, decide, read, actions };
}

it('keeps the skill as it is, flagged no more', async () => {
  const { decide, read, actions } = await aFlaggedSkill();
  await decide({ action: 'keep' });
  expect(await read()).toMatchObject({ state: 'active', flagged_at: null, version: 1 });
  expect(await actions()).toEqual(['skill.kept']);
});

it('edits it, and leaves trust to admins', async () => {
  const { decide, read, actions } = await aFlaggedSkill();
  await expect(decide({ action: 'edit', skill: { trust: 'candidate' } })).rejects.toMatchObject({
    code: 'forbidden',
  });
  await expect(decide({ action: 'edit', skill: { instructions: 'a\u202eb' } })).rejects.toMatchObject({
    code: 'request_invalid',
    errors: [{ pointer: '/skill/instructions' }],
  });
  await decide({ action: 'edit', skill: { instructions: 'better' } });
  const edited = { version: 2, instructions: 'better', trust: 'trusted', flagged_at: null };
  expect(await read()).toMatchObject(edited);
  await decide({ action: 'edit', skill: { trust: 'candidate' } }, ['admin']);
  expect(await read()).toMatchObject({ version: 3, trust: 'candidate' });
  expect(await actions()).toEqual(['skill.revised', 'skill.revised']);
});

it.each([
  ['/skill/pattern/repo_signals', { pattern: { repo_signals: ['tag:x'] } }],
  ['/skill/pattern/error_patterns', { pattern: { error_patterns: [] } }],
  ['/skill/pattern', { pattern: { repo_signals: ['cap:tts'], error_patterns: ['rate'] } }],
  ['/skill/pattern', { instructions: 'other' }],
  ['/skill/pattern/error_patterns/0', { pattern: { error_patterns: ['(a'] } }],
])('does not call it narrower when %s adds no condition', async (pointer, skill) => {
  const { decide, read } = await aFlaggedSkill();
  await expect(decide({ action: 'narrow', skill })).rejects.toMatchObject({
    code: 'request_invalid',
    errors: [{ pointer }],
  });
  expect(await read()).toMatchObject({ version: 1, flagged_at: expect.any(Date) });
});

it('narrows it by a signal or by its patterns', async () => {
  const { decide, read } = await aFlaggedSkill();
  await decide({ action: 'narrow', skill: { pattern: { repo_signals: ['cap:tts', 'tag:x'] } } });
  await decide({ action: 'narrow', skill: { pattern: { error_patterns: ['sample rate'] } } });
  expect(await read()).toMatchObject({
    version: 3,
    flagged_at: null,
    repo_signals: ['cap:tts', 'tag:x'],
    error_patterns: ['sample rate'],
  });
});

it('merges it into another active skill for the same jobs, and retires it', async () => {
  const { project_id, skill_id, decide, read } = await aFlaggedSkill();
  const foreign = await aStoredSkill(db, (await aProject(db)).project_id);
  const unlike = await aStoredSkill(db, project_id, { job_type: 'mix' });
  const refused = [
    [skill_id, 'request_invalid'],
    [unlike, 'request_invalid'],
    [foreign, 'not_found'],
  ] as const;
  for (const [into, code] of refused) {
    await expect(decide({ action: 'merge', into })).rejects.toMatchObject({ code });
  }
  const into = await aStoredSkill(db, project_id);
  await decide({ action: 'merge', into });
  expect(await read()).toMatchObject({ state: 'retired', flagged_at: null });
  expect(await findSkill(db, project_id, into)).toMatchObject({ state: 'active' });
  expect((await listAudit(db, project_id, { limit: 1 }))[0]).toMatchObject({
    action: 'skill.retired',
    data: { into },
  });
});

it('retires it, once', async () => {
  const { decide, read, actions } = await aFlaggedSkill();
  await decide({ action: 'retire' });
  await decide({ action: 'retire' });
  expect(await read()).toMatchObject({ state: 'retired' });
  expect(await actions()).toEqual(['skill.retired']);
  await expect(decide({ action: 'keep' })).rejects.toMatchObject({ code: 'state_conflict' });
  await expect(decide({ action: 'retry' })).rejects.toMatchObject({ code: 'request_invalid' });
});
