import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectDatabase, type Db } from '../../../src/db/connect.ts';
import { cancelSkillReviews } from '../../../src/db/review/review-delivery.ts';
import { flagSkill } from '../../../src/db/skill.ts';
import { openReview, type ReviewOpening } from '../../../src/use-cases/reviews/opening.ts';
import { decideReview } from '../../../src/use-cases/reviews/reviews.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { aDeliveryCtx } from '../../support/delivery.ts';
import { aProject } from '../../support/factories.ts';
import { withoutCapabilities } from '../../support/reviews.ts';
import { waitFor } from '../../support/wait.ts';
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

async function waitsForLock(): Promise<boolean> {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rows.length > 0;
}

async function aSkillReview() {
  const { project_id } = await aProject(db);
  const skill_id = await aStoredSkill(db, project_id);
  const opening: ReviewOpening = {
    project_id,
    kind: 'skill',
    reason: 'it fails often',
    skill_id,
    payload: {},
    due_in_ms: 60_000,
  };
  const { review_id } = await openReview(db, opening);
  const keep = () =>
    decideReview(
      { ...withoutCapabilities(db), ...aDeliveryCtx(db) },
      { key_id: 'key_1', project_id, projects: [project_id], scopes: new Set(['review:decide'] as const) },
      { review_id, version: 1, decision: { action: 'keep' }, idempotency: null },
    );
  return { skill_id, opening, keep };
}

type Rest = (
  trx: Db,
  subject: Pick<Awaited<ReturnType<typeof aSkillReview>>, 'skill_id' | 'opening'>,
) => unknown;

it.each<[string, Rest, object]>([
  ['changes it', (trx, { skill_id }) => cancelSkillReviews(trx, skill_id), { code: 'state_conflict' }],
  ['counts a failure of it', (trx, { opening }) => openReview(trx, opening), { isReplayed: false }],
])(
  'a decision about a skill waits for the transaction that %s at the same time',
  async (_, finish, outcome) => {
    const { keep, ...subject } = await aSkillReview();
    const decided = await db.transaction(async (trx) => {
      await flagSkill(trx, subject.skill_id);
      const deciding = keep().catch((error: unknown) => error);
      await waitFor('the decision to wait', waitsForLock);
      await finish(trx, subject);
      return { deciding };
    });
    expect(await decided.deciding).toMatchObject(outcome);
  },
);
