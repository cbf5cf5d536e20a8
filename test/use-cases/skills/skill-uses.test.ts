import type { SkillOutcome } from '@capstan/core/contracts/skill';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { listAudit } from '../../../src/db/access/audit.ts';
import { connectDatabase, type Db } from '../../../src/db/connect.ts';
import { listReviews } from '../../../src/db/review/review-list.ts';
import { findSkill } from '../../../src/db/skill.ts';
import { openReview } from '../../../src/use-cases/reviews/opening.ts';
import { keepSkillAsItIs } from '../../../src/use-cases/skills/stored-skill.ts';
import { recordSkillUses } from '../../../src/use-cases/skills/use.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { aProject } from '../../support/factories.ts';
import { aStoredSkill } from './rows.ts';

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

async function aUsedSkill(counts: { success_count?: number; failure_count?: number } = {}) {
  const { project_id } = await aProject(db);
  const skill_id = await aStoredSkill(db, project_id, counts);
  let transition = 0;
  const use = (outcome: SkillOutcome, again = transition++) =>
    db.transaction((trx) =>
      recordSkillUses(
        trx,
        {
          project_id,
          occasion: { escalation_id: 'esc_1', transition: again },
          uses: [{ skill_id, version: 1, level: 1, outcome }],
        },
        openReview,
      ),
    );
  const read = async () => {
    const skill = await findSkill(db, project_id, skill_id);
    const reviews = await listReviews(db, project_id, { limit: 10 });
    return { isFlagged: skill?.flagged_at !== null, reviews, skill };
  };
  return { project_id, skill_id, use, read };
}

it('flags a skill below one half after three uses, and asks a person once', async () => {
  const { project_id, skill_id, use, read } = await aUsedSkill({ success_count: 0, failure_count: 1 });
  for (const outcome of ['failure', 'failure', 'neutral'] as const) await use(outcome);
  expect(await read()).toMatchObject({ isFlagged: false, reviews: [] });
  await use('success');
  const { isFlagged, reviews } = await read();
  expect(isFlagged).toBe(true);
  expect(reviews).toMatchObject([
    {
      kind: 'skill',
      state: 'open',
      skill_id,
      run_id: null,
      escalation_id: null,
      reason: 'a skill for tts works in 25 % of its uses',
      payload: { job_type: 'tts', details: { skill_id, version: 1, success_count: 1, failure_count: 3 } },
    },
  ]);
  await use('failure');
  expect((await read()).reviews).toHaveLength(1);
  expect(await listAudit(db, project_id, { limit: 10 })).toMatchObject([
    { action: 'skill.flagged', subject: skill_id, actor: 'capstan', data: { uses: 3, confidence: 0.25 } },
  ]);
});

it('counts a repeated transition once', async () => {
  const { use, read } = await aUsedSkill({ success_count: 0 });
  for (let told = 0; told < 5; told++) await use('failure', 7);
  expect(await read()).toMatchObject({ isFlagged: false, skill: { failure_count: 1, uses: 1 } });
});

it('ignores a skill that a person kept until it was used three times more', async () => {
  const { project_id, skill_id, use, read } = await aUsedSkill();
  for (let n = 0; n < 3; n++) await use('failure');
  expect((await read()).isFlagged).toBe(true);
  await db.transaction((trx) => keepSkillAsItIs(trx, { project_id, skill_id, actor: 'key_1' }));
  for (let n = 0; n < 2; n++) await use('failure');
  expect((await read()).isFlagged).toBe(false);
  await use('failure');
  expect((await read()).isFlagged).toBe(true);
});

it('does not flag one that works, however it began', async () => {
  const { use, read } = await aUsedSkill({ success_count: 1 });
  for (const outcome of ['failure', 'success', 'failure', 'success'] as const) await use(outcome);
  expect((await read()).isFlagged).toBe(false);
});
