import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { flagSkill, retireSkill, reviseSkill } from '../../src/db/skill.ts';
import { createSkillMatcher, type SkillQuery } from '../../src/parts/skill-matcher.ts';
import { writeSkillText } from '../../src/use-cases/skills/stored-skill.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { aProject } from '../support/factories.ts';
import { countProcessorMs } from '../support/processor-time.ts';
import { aStoredSkill } from '../use-cases/skills/rows.ts';

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

async function aMatcher() {
  const { project_id } = await aProject(db);
  const matcher = createSkillMatcher({ db });
  const match = (query: Partial<SkillQuery> = {}) =>
    matcher.match({
      project_id,
      job_type: 'tts',
      signals: ['cap:tts'],
      error: 'rate 44.1k is bad',
      ...query,
    });
  const ids = async (query: Partial<SkillQuery> = {}) => (await match(query)).map(({ skill }) => skill.id);
  return { project_id, match, ids };
}

it('finds the skills for job type, signals and error, with the groups of the pattern', async () => {
  const { project_id, match, ids } = await aMatcher();
  const fits = await aStoredSkill(db, project_id, {
    repo_signals: ['cap:tts'],
    error_patterns: ['^no', 'rate (?<rate>\\S+) is bad'],
  });
  await aStoredSkill(db, project_id, { job_type: 'mix' });
  await aStoredSkill(db, project_id, { repo_signals: ['cap:tts', 'tag:other'] });
  await aStoredSkill(db, project_id, { error_patterns: ['width'] });
  await retireSkill(db, project_id, await aStoredSkill(db, project_id));
  await aStoredSkill(db, (await aProject(db)).project_id);
  expect(await match()).toEqual([
    { skill: expect.objectContaining({ id: fits, version: 1 }), groups: { rate: '44.1k' } },
  ]);
  expect(await ids({ error: null })).toEqual([]);
});

it('takes the three best by lower bound, then recency', async () => {
  const { project_id, ids } = await aMatcher();
  const newborn = await aStoredSkill(db, project_id, { last_used_at: new Date(2_000) });
  const proven = await aStoredSkill(db, project_id, { success_count: 45, failure_count: 5 });
  await aStoredSkill(db, project_id, { success_count: 1, failure_count: 4 });
  const older = await aStoredSkill(db, project_id, { last_used_at: new Date(1_000) });
  expect(await ids()).toEqual([proven, newborn, older]);
});

it('prefers a skill with a usable template to better ones', async () => {
  const { project_id, ids } = await aMatcher();
  const template =
    '[{"op":"test","path":"/rate","value":"44.1k"},{"op":"replace","path":"/rate","value":44100}]';
  for (const success_count of [20, 30, 40]) await aStoredSkill(db, project_id, { success_count });
  const flagged = await aStoredSkill(db, project_id, { template, success_count: 9, instructions: 'a' });
  await flagSkill(db, flagged);
  await aStoredSkill(db, project_id, { template, trust: 'candidate', success_count: 9, instructions: 'b' });
  const ready = await aStoredSkill(db, project_id, { template, failure_count: 5, instructions: 'c' });
  expect(await ids({ with_template: true })).toEqual([ready]);
});

it('answers with all templates for an error, as each fits other inputs', async () => {
  const { project_id, ids } = await aMatcher();
  const values = Array.from({ length: 5 }, (_, n) => `[{"op":"test","path":"/rate","value":${n}}]`);
  for (const template of values) await aStoredSkill(db, project_id, { template, instructions: template });
  expect(await ids({ with_template: true })).toHaveLength(5);
  expect(await ids()).toHaveLength(3);
});

it('reads the patterns of a new version, not those it has compiled before', async () => {
  const { project_id, ids } = await aMatcher();
  const skill_id = await aStoredSkill(db, project_id, { error_patterns: ['width'] });
  expect(await ids()).toEqual([]);
  const content = { repo_signals: [], error_patterns: ['rate'], instructions: 'x', template: null };
  const revision = { ...writeSkillText(content, 'key_1'), project_id, skill_id, version: 1, trust: null };
  expect(await reviseSkill(db, revision)).toBe(true);
  expect(await ids()).toEqual([skill_id]);
});

it('lets other work continue while it tries many hostile patterns', async () => {
  const { project_id, match } = await aMatcher();
  for (let n = 0; n < 80; n++) {
    await aStoredSkill(db, project_id, {
      error_patterns: [`(?s).*?a.{${200 + n}}[zq]`, `(?:a+b?)+.{${n}}$q`],
    });
  }
  let turns = 0;
  const clock = setInterval(() => turns++, 1);
  const spentMs = countProcessorMs();
  expect(await match({ error: 'ab'.repeat(2_048) })).toEqual([]);
  const totalMs = spentMs();
  clearInterval(clock);
  expect(totalMs).toBeLessThan(80 * 100);
  expect(turns).toBeGreaterThan(totalMs / 60);
});
