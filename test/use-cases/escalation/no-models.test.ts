/** The ladder of a step without a model: rules, and people. */

import type { ReviewDecision } from '@capstan/core/contracts/review';
import type { Advanced } from '@capstan/core/workflow-payloads';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { expireReviews } from '../../../src/db/review/review-delivery.ts';
import { type LadderWorld, startLadderWorld } from '../../support/ladders.ts';
import { untilLocked } from '../../support/locks.ts';

let world: LadderWorld;
let project: string;

beforeAll(async () => {
  world = await startLadderWorld({});
});
afterAll(() => world.close());
beforeEach(async () => {
  project = await world.newProject();
});

function reviewOf(place: Advanced): string {
  if (place.command.type !== 'end' || place.command.outcome !== 'review') {
    throw new Error(`a review was expected: ${JSON.stringify(place.command)}`);
  }
  return place.command.review_id;
}

async function decide(place: Advanced, decision: ReviewDecision): Promise<Advanced> {
  const reviewId = reviewOf(place);
  const review = await world.api.db('review').where({ review_id: reviewId }).first('version');
  const answer = await world.call(project, `/v1/reviews/${reviewId}/decision`, {
    body: decision,
    headers: { 'if-match': `"${review.version}"` },
  });
  if (answer.status !== 200) throw new Error(await answer.text());
  return world.climb(await world.decided(reviewId));
}

function stepOf(runId: string) {
  return world.api.db('step').where({ run_id: runId }).first('state', 'output', 'error');
}

test('a person corrects the input, and the next run with that mistake succeeds by itself', async () => {
  const first = await world.failStep({ project_id: project, input: { rate: 44_101 } });
  const asked = await world.climb(first.place);
  expect(await stepOf(first.run_id)).toMatchObject({ state: 'in_review' });
  const solved = await decide(asked, { action: 'edit', input: { rate: 44_100 } });
  expect(solved.command).toMatchObject({ outcome: 'succeeded', skill_id: expect.any(String) });
  expect(await stepOf(first.run_id)).toMatchObject({ state: 'succeeded', output: { rate: 44_100 } });

  const next = await world.failStep({ project_id: project, input: { rate: 44_101 } });
  const end = await world.climb(next.place);
  expect(end.command).toEqual(solved.command);
  expect(await stepOf(next.run_id)).toMatchObject({ state: 'succeeded', output: { rate: 44_100 } });
  const skill = await world.api.db('skill').where({ project_id: project }).first('source', 'success_count');
  expect(skill).toEqual({ source: 'human-fix', success_count: 2 });
});

test('the one repair that a schema allows is shown, and applied where the pipeline lets it', async () => {
  const input = { rate: '44100' };
  const shown = await world.failStep({ project_id: project, input });
  const asked = await world.climb(shown.place);
  const review = await world.api
    .db('review')
    .where({ review_id: reviewOf(asked) })
    .first('payload');
  expect(review.payload).toMatchObject({
    input,
    proposals: [{ input: { rate: 44_100 }, source: 'repair' }],
    history: [{ level: 0, label: 'static template' }],
  });
  const approved = await decide(asked, { action: 'approve', proposal: 0 });
  expect(approved.command).toMatchObject({ outcome: 'succeeded' });

  const other = await world.newProject();
  const step = { escalate: { repair: 'apply' as const } };
  const repaired = await world.failStep({ project_id: other, input, step });
  expect((await world.climb(repaired.place)).command).toEqual({ type: 'end', outcome: 'succeeded' });
  expect(await stepOf(repaired.run_id)).toMatchObject({ state: 'succeeded', output: { rate: 44_100 } });
});

test('a correction that does not help is asked about again, three times at most', async () => {
  const { run_id, place } = await world.failStep({ project_id: project, input: { rate: 44_101 } });
  let asked = await world.climb(place);
  const reviewId = reviewOf(asked);
  for (const rate of [44_103, 44_105]) {
    asked = await decide(asked, { action: 'edit', input: { rate } });
    expect(reviewOf(asked)).toBe(reviewId);
  }
  const end = await decide(asked, { action: 'edit', input: { rate: 44_107 } });
  expect(end.command).toMatchObject({ outcome: 'failed', error: { code: 'ladder_exhausted' } });
  expect(await stepOf(run_id)).toMatchObject({ state: 'failed' });
  const { payload } = await world.escalation(project, end.escalation_id);
  expect(payload.escalation_history.map(({ level }) => level)).toEqual([0, 5, 5, 5]);
});

test('skip, output and reject complete the step as the person decided', async () => {
  const step = { optional: true, allow_output: true };
  const end = async (decision: ReviewDecision) => {
    const failed = await world.failStep({ project_id: project, input: { rate: 44_101 }, step });
    const { command } = await decide(await world.climb(failed.place), decision);
    return [command, await stepOf(failed.run_id)];
  };
  expect(await end({ action: 'skip' })).toMatchObject([{ outcome: 'skipped' }, { state: 'skipped' }]);
  expect(await end({ action: 'output', output: { rate: 1 } })).toMatchObject([
    { outcome: 'succeeded' },
    { state: 'succeeded', output: { rate: 1 } },
  ]);
  const code = 'review_rejected';
  expect(await end({ action: 'reject', note: 'not worth it' })).toMatchObject([
    { outcome: 'failed', error: { code, message: expect.stringContaining('not worth it') } },
    { state: 'failed', error: { code } },
  ]);
});

test('a step that is not to wait fails with its error and the text of the specification', async () => {
  const step = { escalate: { on_exhausted: 'fail' as const } };
  const { run_id, place } = await world.failStep({ project_id: project, input: { rate: 44_101 }, step });
  const message = expect.stringMatching(
    /; the escalation ladder is exhausted and human review is required, but on_exhausted is fail, .*: no model is there to ask$/s,
  );
  expect((await world.climb(place)).command).toMatchObject({ outcome: 'failed', error: { message } });
  expect(await stepOf(run_id)).toMatchObject({
    state: 'failed',
    error: { code: 'ladder_exhausted', message },
  });
});

test('a step that is delivered at most once asks a person before anything is run again', async () => {
  const runs = world.capability.execs.length;
  const step = { retry: { max: 0 }, escalate: { repair: 'apply' as const } };
  const { run_id, place } = await world.failStep({ project_id: project, input: { rate: 44_101 }, step });
  expect(place.command).toMatchObject({ type: 'end', outcome: 'review' });
  expect(world.capability.execs.length).toBe(runs + 1);
  // The process that asked was killed before it could report: the question is the same one, and still open.
  expect(await world.repeatStep(run_id)).toEqual({ run_id, place });
  expect(world.capability.execs.length).toBe(runs + 1);
  expect(await stepOf(run_id)).toMatchObject({ state: 'in_review' });
});

test('an overdue question has expired even before maintenance closes it, and one that is not due stays', async () => {
  const { run_id, place } = await world.failStep({ project_id: project, input: { rate: 44_101 } });
  const asked = await world.climb(place);
  const review_id = reviewOf(asked);
  expect(await world.decided(review_id)).toEqual(asked);
  await world.api.db.raw(`update review set due_at = clock_timestamp() where review_id = ?`, [review_id]);
  const end = await world.decided(review_id);
  expect(end.command).toMatchObject({
    outcome: 'failed',
    error: { code: 'ladder_exhausted', message: expect.stringContaining('nobody decided in time') },
  });
  expect(await stepOf(run_id)).toMatchObject({ state: 'failed' });
  const review = await world.api.db('review').where({ review_id }).first('state', 'version');
  expect(review).toEqual({ state: 'expired', version: 2 });
  const audit = await world.api.db('audit').where({ subject: review_id }).select('action', 'data');
  expect(audit).toEqual([{ action: 'review.expired', data: { version: 2, round: 1 } }]);
});

test('an overdue question has expired for every reader while maintenance closes it', async () => {
  const { place } = await world.failStep({ project_id: project, input: { rate: 44_101 } });
  const review_id = reviewOf(await world.climb(place));
  const { db } = world.api;
  await db.raw(`update review set due_at = clock_timestamp() where review_id = ?`, [review_id]);
  const maintenance = await db.transaction();
  await expireReviews(maintenance, 1, review_id);
  const coming = world.decided(review_id);
  await Promise.race([untilLocked(db, 'review'), coming]);
  await maintenance.commit();
  expect((await coming).command).toMatchObject({ outcome: 'failed', error: { code: 'ladder_exhausted' } });
});
