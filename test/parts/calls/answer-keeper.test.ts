import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { beforeEach, expect, test } from 'vitest';
import { storeCachedAnswer } from '../../../src/db/attempt/cached-answer.ts';
import { insertAnswer } from '../../../src/db/idempotency.ts';
import { createAnswerKeeper } from '../../../src/parts/calls/answer-keeper.ts';
import { useDatabase } from '../../support/database.ts';
import { aProject } from '../../support/factories.ts';

const { db } = useDatabase(3);
const logger = pino({ level: 'silent' });
const limit = 20_000;

let mine: string;
let other: string;
beforeEach(async () => {
  mine = (await aProject(db)).project_id;
  other = (await aProject(db)).project_id;
});

function aKeeper(perProject = limit) {
  const config = { KEPT_ANSWER_BYTES: 2_000, KEPT_ANSWERS_BYTES_PER_PROJECT: perProject };
  return createAnswerKeeper({ db, logger, config });
}

/** About 1,000 bytes that Postgres cannot compress. */
function anOutput(): { text: string } {
  return { text: randomBytes(750).toString('base64') };
}

async function cache(project_id: string, key: string): Promise<void> {
  await storeCachedAnswer(db, {
    project_id,
    key: Buffer.from(key.padEnd(32)).toString('hex'),
    capability: 'a',
    attempt_id: `att_${key}`,
    instance_id: 'ins_a',
    endpoint: 'http://a',
    cost_nano: '0',
    output: anOutput(),
    ttl_ms: 7_776_000_000,
    is_of_own_alone: false,
  });
}

function keep(project_id: string, key: string, request = 'POST /v1/capabilities/a/exec'): Promise<boolean> {
  const place = { project_id, request, key, body_sha256: Buffer.alloc(32) };
  return insertAnswer(db, place, { status: 200, answer: anOutput() });
}

const numbers = Array.from({ length: 30 }, (_, n) => String(n).padStart(2, '0'));

test('the oldest cached answers of a project go, the others of all projects stay', async () => {
  for (const n of numbers) {
    await cache(mine, n);
    await cache(other, n);
  }
  const keeper = aKeeper();
  expect(keeper.findFault(mine, {})).toBeNull();
  await keeper.close();
  const left = await db('cached_answer').where({ project_id: mine }).orderBy('stored_at').pluck('attempt_id');
  expect(left.at(-1)).toBe('att_29');
  expect(left.length).toBeGreaterThan(10);
  expect(left).toEqual(numbers.slice(-left.length).map((n) => `att_${n}`));
  const { rows } = await db.raw(
    'select sum(pg_column_size(output))::int as bytes from cached_answer where project_id = ?',
    [mine],
  );
  expect(rows[0].bytes).toBeLessThan(limit);
  expect(await db('cached_answer').where({ project_id: other })).toHaveLength(30);
});

test('the oldest answers of keys are replaced by a note; the keys stay, and so do answers to other requests', async () => {
  for (const n of numbers) {
    await keep(mine, n);
    await keep(mine, n, 'POST /v1/runs');
  }
  await db('idempotency')
    .where({ project_id: mine, key: '00', request: 'POST /v1/capabilities/a/exec' })
    .update({ status: 0 });
  const keeper = aKeeper(2 * limit);
  keeper.count(mine, {});
  await keeper.close();
  const rows = await db('idempotency').where({ project_id: mine }).orderBy('key');
  expect(rows).toHaveLength(60);
  const calls = rows.filter(({ request }) => request.endsWith('/exec'));
  expect(rows.filter(({ request, status }) => request === 'POST /v1/runs' && status !== 200)).toEqual([]);
  expect([calls[0].status, calls[1].status, calls.at(-1).status]).toEqual([0, 410, 200]);
  expect(calls[1].answer).toMatchObject({ code: 'answer_not_kept' });
});

test('an answer above the limit is not cached, nor is anything counted without a limit for projects', async () => {
  const keeper = aKeeper();
  expect(keeper.findFault(mine, 'x'.repeat(1_998))).toBeNull();
  expect(keeper.findFault(mine, 'x'.repeat(1_999))).toBe(
    'the answer has 2001 bytes, and at most 2000 are cached',
  );
  expect(keeper.findFault(mine, '€'.repeat(700))).toContain('2102 bytes');
  await keeper.close();
  for (const n of numbers) await cache(mine, n);
  const unlimited = aKeeper(0);
  unlimited.findFault(mine, {});
  await unlimited.close();
  expect(await db('cached_answer').where({ project_id: mine })).toHaveLength(30);
});

test('a project is looked at once for each tenth of its limit, not for each answer', async () => {
  let statements = 0;
  const count = (): void => {
    statements += 1;
  };
  db.on('query', count);
  const keeper = aKeeper(1_000_000);
  for (let n = 0; n < 400; n++) {
    keeper.count(mine, 'x'.repeat(1_000));
    await keeper.close();
  }
  db.off('query', count);
  // Each look is two statements: one at the beginning, and one for each tenth of 480,000 bytes.
  expect(statements).toBe(2 * (1 + 4));
});
