import { describe, expect, it } from 'vitest';
import { insertAudit, listAudit } from '../../../src/db/access/audit.ts';
import { findAdviceAnswer, insertAdviceAnswer } from '../../../src/db/idempotency.ts';
import {
  claimReview,
  decideReview,
  findOpenReview,
  findReview,
  insertReview,
  type NewReview,
  type ReviewRow,
  releaseReview,
  reopenReview,
} from '../../../src/db/review/review.ts';
import {
  cancelOrphanedReviews,
  cancelRunReviews,
  expireReviews,
  listUndeliveredReviews,
  markReviewDelivered,
} from '../../../src/db/review/review-delivery.ts';
import { listReviews, type ReviewFilter } from '../../../src/db/review/review-list.ts';
import { finishRun } from '../../../src/db/run/run.ts';
import { newId } from '../../../src/parts/ids.ts';
import { useDatabase } from '../../support/database.ts';
import { aProject, aRun } from '../../support/factories.ts';

const { db } = useDatabase(8);

async function aReview(changes: Partial<NewReview> = {}): Promise<NewReview> {
  const review: NewReview = {
    review_id: newId('review'),
    kind: 'escalation',
    reason: 'the ladder is exhausted',
    run_id: null,
    step_id: null,
    item: null,
    skill_id: null,
    escalation_id: newId('escalation'),
    due_in_ms: 3_600_000,
    payload: { error: 'rate' },
    ...changes,
    project_id: changes.project_id ?? (await aProject(db)).project_id,
  };
  expect(await insertReview(db, review)).toBe(true);
  return review;
}

function read({ project_id, review_id }: NewReview) {
  return findReview(db, project_id, review_id) as Promise<ReviewRow>;
}
function decide(review: NewReview, by: string, version = 1) {
  return decideReview(db, { ...review, by, version, decision: { action: 'reject', note: by } });
}
function claim(review: NewReview, by: string, lease_ms = 60_000) {
  return claimReview(db, { ...review, by, lease_ms });
}

describe('a decision', () => {
  it('is made by one of those who decide at once', async () => {
    const review = await aReview();
    const people = ['a', 'b', 'c', 'd'];
    const decided = await Promise.all(people.map((by) => decide(review, by)));
    const winner = people[decided.findIndex((row) => row !== undefined)];
    expect(decided.filter((row) => row !== undefined)).toHaveLength(1);
    expect(await read(review)).toMatchObject({
      state: 'resolved',
      version: 2,
      decided_by: winner,
      delivered_at: null,
      decision: { action: 'reject', note: winner },
    });
  });

  it('is refused at another version, in another project, and while another person has claimed it', async () => {
    const review = await aReview();
    expect(await decide(review, 'a', 2)).toBeUndefined();
    expect(await decide({ ...review, project_id: 'another' }, 'a')).toBeUndefined();
    const claimed = await claim(review, 'a');
    expect(claimed).toMatchObject({ state: 'claimed', assignee: 'a', version: 2 });
    expect(await decide(review, 'b', 2)).toBeUndefined();
    expect(await decide(review, 'a', 2)).toMatchObject({ state: 'resolved', assignee: 'a', decided_by: 'a' });
  });

  it('about a skill needs no delivery', async () => {
    const review = await aReview({ kind: 'skill', escalation_id: null });
    expect(await decide(review, 'a')).toMatchObject({ delivered_at: expect.any(Date) });
  });
});

describe('a claim', () => {
  it('is had by one person until it is released, and prolonged by that one only', async () => {
    const review = await aReview();
    const claims = await Promise.all(['a', 'b', 'c'].map((by) => claim(review, by)));
    const [first] = claims.filter((row) => row !== undefined);
    expect(claims.filter((row) => row !== undefined)).toHaveLength(1);
    const by = first?.assignee as string;
    const other = by === 'a' ? 'b' : 'a';
    expect(await claim(review, by)).toMatchObject({ version: 2, assignee: by });
    expect(await releaseReview(db, { ...review, by: other })).toBeUndefined();
    expect(await releaseReview(db, { ...review, by })).toMatchObject({
      state: 'open',
      version: 3,
      assignee: null,
    });
    expect(await claim(review, other)).toMatchObject({ version: 4, assignee: other });
  });

  it('that ran out reads as open, and anyone may decide or claim', async () => {
    const [review, second] = [await aReview(), await aReview()];
    for (const one of [review, second]) await claim(one, 'a', -1_000);
    expect(await read(review)).toMatchObject({ state: 'open', assignee: null, claim_expires_at: null });
    expect(await decide(review, 'b', 2)).toMatchObject({ decided_by: 'b', assignee: null });
    expect(await claim(second, 'b')).toMatchObject({ version: 3, assignee: 'b' });
    expect(await decide(second, 'a', 2)).toBeUndefined();
  });
});

describe('an escalation', () => {
  it('has one open review, which is asked again after a decision that did not help', async () => {
    const review = await aReview();
    const second = { ...review, review_id: newId('review') };
    expect(await insertReview(db, second)).toBe(false);
    const again = { ...review, round: 1, reason: 'still wrong', payload: { error: 'other' } };
    expect(await reopenReview(db, again)).toBe(false);
    await decide(review, 'a');
    const reopened = await Promise.all([reopenReview(db, again), reopenReview(db, again)]);
    expect(reopened.filter(Boolean)).toHaveLength(1);
    expect(await findOpenReview(db, { escalation_id: review.escalation_id as string })).toMatchObject({
      review_id: review.review_id,
      state: 'open',
      round: 2,
      version: 3,
      decision: null,
      decided_by: null,
      payload: { error: 'other' },
    });
    expect(await decide(review, 'b', 3)).toMatchObject({ round: 2, decided_by: 'b' });
  });
});

describe('maintenance', () => {
  const undelivered = async () =>
    (await listUndeliveredReviews(db, 0, 100)).map(({ review_id }) => review_id);

  it('expires what is due and nothing else, and a decision that came first stays', async () => {
    const [due, later, decided] = [
      await aReview({ due_in_ms: -1 }),
      await aReview(),
      await aReview({ due_in_ms: -1 }),
    ];
    await decide(decided, 'a');
    const expired = await expireReviews(db, 100);
    expect(expired.map(({ review_id }) => review_id)).toEqual([due.review_id]);
    expect(await read(due)).toMatchObject({ state: 'expired', version: 2, decided_at: expect.any(Date) });
    expect(await read(decided)).toMatchObject({ state: 'resolved' });
    expect(await read(later)).toMatchObject({ state: 'open' });
    expect(await decide(due, 'a', 2)).toBeUndefined();
    expect(await undelivered()).toEqual(expect.arrayContaining([due.review_id, decided.review_id]));
  });

  it('repeats a delivery until that version is marked', async () => {
    const review = await aReview();
    await decide(review, 'a');
    await markReviewDelivered(db, review.review_id, 1);
    expect(await undelivered()).toContain(review.review_id);
    await markReviewDelivered(db, review.review_id, 2);
    expect(await undelivered()).not.toContain(review.review_id);
  });

  it('cancels the reviews of a run that ended, at its end or later', async () => {
    const runs = [await aRun(db), await aRun(db), await aRun(db)] as const;
    const reviews = await Promise.all(
      runs.map(({ run_id, project_id }) => aReview({ run_id, step_id: 'a', item: 0, project_id })),
    );
    expect(await cancelRunReviews(db, runs[0].run_id)).toBe(1);
    const end = { state: 'cancelled', output: undefined, error: null, step_ids: ['a'] } as const;
    await finishRun(db, { run_id: runs[1].run_id, ...end });
    expect(await cancelOrphanedReviews(db)).toBe(1);
    const states = await Promise.all(reviews.map(async (review) => (await read(review)).state));
    expect(states).toEqual(['cancelled', 'cancelled', 'open']);
  });
});

it('a list has the reviews of its project by state, kind, person, run and due date', async () => {
  const { run_id, project_id } = await aRun(db);
  const [open, claimed, lapsed, overdue, resolved] = [
    await aReview({ project_id, kind: 'budget', run_id, step_id: 'a', item: 0 }),
    await aReview({ project_id }),
    await aReview({ project_id }),
    await aReview({ project_id, due_in_ms: -1 }),
    await aReview({ project_id }),
  ] as const;
  await claim(claimed, 'a');
  await claim(lapsed, 'a', -1_000);
  await decide(resolved, 'a');
  await aReview();
  const ids = async (filter: Partial<ReviewFilter>) =>
    (await listReviews(db, project_id, { limit: 100, ...filter })).map(({ review_id }) => review_id);
  const idsOf = (...reviews: NewReview[]) => reviews.map(({ review_id }) => review_id);
  expect(await ids({})).toEqual(idsOf(resolved, overdue, lapsed, claimed, open));
  expect(await ids({ state: 'open' })).toEqual(idsOf(overdue, lapsed, open));
  expect(await ids({ state: 'claimed' })).toEqual(idsOf(claimed));
  expect(await ids({ state: 'resolved' })).toEqual(idsOf(resolved));
  expect(await ids({ assignee: 'a' })).toEqual(idsOf(claimed));
  expect(await ids({ kind: 'budget' })).toEqual(idsOf(open));
  expect(await ids({ run_id })).toEqual(idsOf(open));
  expect(await ids({ overdue: true })).toEqual(idsOf(overdue));
  expect(await ids({ overdue: false, after: lapsed.review_id, limit: 1 })).toEqual(idsOf(claimed));
});

it('the audit is added to and never changed', async () => {
  const { project_id } = await aProject(db);
  for (const subject of ['skl_1', 'skl_2', 'skl_1']) {
    await insertAudit(db, {
      project_id,
      actor: 'key_1',
      action: 'skill.retired',
      subject,
      data: { subject },
    });
  }
  const [newest, ...rest] = await listAudit(db, project_id, { subject: 'skl_1', limit: 10 });
  expect(rest).toHaveLength(1);
  expect(await listAudit(db, project_id, { after: newest?.entry, limit: 10 })).toMatchObject([
    { subject: 'skl_2' },
    { subject: 'skl_1' },
  ]);
  await expect(db('audit').update({ actor: 'nobody' })).rejects.toThrow('append-only');
  await expect(db('audit').delete()).rejects.toThrow('append-only');
  await expect(db.raw('truncate audit')).rejects.toThrow('append-only');
});

it('the first advice to a request stays, for its project', async () => {
  const { project_id } = await aProject(db);
  const key = { project_id, request_sha256: Buffer.alloc(32, 1) };
  for (const answer of ['first', 'second']) await insertAdviceAnswer(db, key, answer);
  expect(await findAdviceAnswer(db, key)).toBe('first');
  expect(await findAdviceAnswer(db, { ...key, project_id: 'another' })).toBeUndefined();
});
