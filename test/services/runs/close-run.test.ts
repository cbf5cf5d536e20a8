import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectDatabase, type Db } from '../../../src/db/connect.ts';
import { readReview } from '../../../src/db/review.ts';
import { openReview } from '../../../src/services/reviews/open-review.ts';
import { createCloseRun } from '../../../src/services/runs/close-run.ts';
import { createRunContexts } from '../../../src/services/steps/run-context.ts';
import { createStepResults } from '../../../src/services/steps/step-results.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { aRun } from '../../support/factories.ts';

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

it('the end of a run ends what it has asked people, and nothing of other runs', async () => {
  const closeRun = createCloseRun({ db, contexts: createRunContexts(db), results: createStepResults(db) });
  const runs = [await aRun(db), await aRun(db)] as const;
  const reviews = await Promise.all(
    runs.map(({ run_id, project_id }) =>
      openReview(db, {
        ...{ project_id, kind: 'escalation', reason: 'r', due_in_ms: 60_000, payload: {} },
        ...{ run_id, step_id: 'a', item: 0, escalation_id: `esc_${run_id}` },
      }),
    ),
  );
  const error = { code: 'run_cancelled', message: 'cancelled' };
  await closeRun({ run_id: runs[0].run_id, outcome: 'cancelled', error, has_escalated: true });
  const states = await Promise.all(
    reviews.map(async ({ review_id }) => (await readReview(db, review_id))?.state),
  );
  expect(states).toEqual(['cancelled', 'open']);
});
