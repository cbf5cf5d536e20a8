/** Open reviews as tables: their groups, their columns, and the decision of a row. */
import type { Json } from '@capstan/core/contracts/primitives';
import type { ReviewSummary } from '@capstan/core/contracts/review';
import { describe, expect, test } from 'vitest';
import { beginDraft, toDecision, whatIsMissing } from '../src/pages/review/model.ts';
import {
  beginRow,
  cellOf,
  commonActions,
  describeDecisions,
  describeEnd,
  fieldsOf,
  groupReviews,
  obstacleOf,
  writeField,
} from '../src/pages/reviews/table-model.ts';
import { type TitledReview, titleOf } from '../src/review/review-words.ts';

let count = 0;

function aReview(input: Json, more: object = {}): ReviewSummary {
  count += 1;
  return {
    review_id: `rev_${count}`,
    kind: 'step',
    state: 'open',
    reason: `Title of ${count}`,
    pipeline: 'episode',
    step_id: 'approve',
    actions: ['output', 'reject'],
    payload: { input },
    version: 1,
    round: 1,
    due_at: '2026-01-01T00:00:00Z',
    created_at: '2026-01-01T00:00:00Z',
    ...more,
  } as ReviewSummary;
}

function tableOf(reviews: readonly ReviewSummary[]) {
  return groupReviews(reviews).map(({ heading, columns, reviews: rows }) => ({
    heading,
    columns: columns.map(({ name }) => name),
    rows: rows.map((review) => columns.map((column) => cellOf(review, column))),
  }));
}

describe('the tables of open reviews', () => {
  test('have a column for each input that differs, single values first', () => {
    const reviews = [
      aReview({ show: 'news', meta: { title: 'A', tags: ['x'] }, minutes: 3 }),
      aReview({ show: 'news', meta: { title: 'B', tags: ['y', 'z'] }, minutes: 3 }),
    ];
    expect(tableOf(reviews)).toEqual([
      {
        heading: 'Question: episode › approve',
        columns: ['title', 'tags'],
        rows: [
          ['A', ['x']],
          ['B', ['y', 'z']],
        ],
      },
    ]);
  });

  test('name equal last parts in full, and show an input that only some have', () => {
    const reviews = [
      aReview({ from: { path: 'a' }, to: { path: 'b' } }),
      aReview({ from: { path: 'c' }, to: { path: 'd' }, 'a/b': null }),
    ];
    expect(tableOf(reviews)).toMatchObject([
      {
        columns: ['from.path', 'to.path', 'a/b'],
        rows: [
          ['a', 'b', undefined],
          ['c', 'd', null],
        ],
      },
    ]);
  });

  test('separate different questions, in the order of the most urgent', () => {
    const groups = groupReviews([
      aReview({ rate: 1 }, { kind: 'escalation', payload: { job_type: 'resample', input: { rate: 'x' } } }),
      aReview({ n: 1 }),
      aReview({}, { kind: 'budget', step_id: undefined }),
      aReview({ n: 2 }),
      aReview({}, { kind: 'budget', pipeline: 'other' }),
    ]);
    expect(groups.map(({ heading, reviews }) => [heading, reviews.length])).toEqual([
      ['Rejected input: episode › approve', 1],
      ['Question: episode › approve', 2],
      ['Budget', 2],
    ]);
  });

  test.each<[Json, readonly string[]]>([
    [{ a: 1, b: 'x', c: true, d: 4, e: 5 }, ['a', 'b', 'c', 'd']],
    ['a text', []],
    [['a', 'list'], []],
    [{ deep: { deeper: { deepest: { end: 1 } } } }, ['deepest']],
  ])('of one review show its first inputs: %j', (input, columns) => {
    expect(tableOf([aReview(input)])[0]?.columns).toEqual(columns);
  });
});

const title = { type: 'string' };
const question = (schema: object, input: Json = {}) => aReview({}, { payload: { input, schema } });

describe('a row', () => {
  test('begins with the inputs that its answer repeats, and takes what is typed', () => {
    const schema = {
      type: 'object',
      required: ['title', 'ok'],
      properties: { title, ok: { type: 'boolean' } },
    };
    const review = question(schema, { title: 'Draft', ok: true, other: 1 });
    const begun = beginRow(review);
    expect(begun.output).toEqual({ title: 'Draft' });
    expect(obstacleOf(review, begun, undefined)).toBe('Fill in ok.');
    const written = writeField(writeField(begun, 'ok', false), 'title', 'Better');
    expect(obstacleOf(review, written, undefined)).toBeNull();
    expect(toDecision(written, review as never)).toEqual({
      action: 'output',
      output: { title: 'Better', ok: false },
    });
    expect(obstacleOf(review, writeField(written, 'title', undefined), undefined)).toBe('Fill in title.');
  });

  test.each<[string, object]>([
    ['no schema', {}],
    ['a list', { type: 'object', properties: { tags: { type: 'array', items: title } } }],
    ['four fields', { type: 'object', properties: { a: title, b: title, c: title, d: title } }],
    ['an object in it', { type: 'object', properties: { a: { type: 'object', properties: { b: title } } } }],
  ])('is opened where its answer does not fit: %s', (_, schema) => {
    const review = question(schema);
    expect(fieldsOf(review, beginRow(review))).toBeNull();
    expect(obstacleOf(review, beginRow(review), undefined)).toBe('open it to decide');
  });

  test('edits the refused part of an input alone, and sends nothing that was refused before', () => {
    const review = aReview(
      {},
      {
        kind: 'escalation',
        actions: ['edit', 'advise', 'retry', 'reject'],
        payload: {
          input: { rate: '48k', path: 'a.wav' },
          schema: { type: 'object', properties: { rate: { type: 'integer' }, path: title } },
          validation_errors: [{ pointer: '/rate', message: 'must be integer' }],
        },
      },
    );
    const begun = beginRow(review);
    expect(fieldsOf(review, begun)?.map(({ name, kind }) => [name, kind])).toEqual([['rate', 'number']]);
    expect(obstacleOf(review, begun, undefined)).toMatch(/^Nothing is changed yet/);
    const mended = writeField(begun, 'rate', 48_000);
    expect(obstacleOf(review, mended, undefined)).toBeNull();
    expect(mended.value).toEqual({ rate: 48_000, path: 'a.wav' });
  });

  test('of a budget begins with the sum that is enough', () => {
    const details = { scope: 'run', limit_usd: 1, spent_usd: 0.9, reserved_usd: 0, minimum_usd: 0.25 };
    const review = aReview({}, { kind: 'budget', actions: ['raise', 'cancel'], payload: { details } });
    expect(toDecision(beginRow(review), review as never)).toEqual({
      action: 'raise',
      budget_ceiling_usd: 1.15,
    });
    expect(obstacleOf(review, writeField(beginRow(review), 'usd', '1'), undefined)).toMatch(/too low/);
  });

  test('of a claimed review is for the person who claimed it', () => {
    const proposals = [{ input: { rate: 1 }, patch: [], source: 'repair' }];
    const review = aReview(
      {},
      {
        kind: 'escalation',
        state: 'claimed',
        assignee: 'key_2',
        actions: ['approve', 'reject'],
        payload: { proposals },
      },
    );
    expect(obstacleOf(review, beginRow(review), 'key_1')).toBe('claimed by key_2');
    expect(obstacleOf(review, beginRow(review), 'key_2')).toBeNull();
  });
});

describe('many at once', () => {
  const proposals = [{ input: {}, patch: [], source: 'repair' }];
  const correction = aReview(
    {},
    {
      kind: 'escalation',
      actions: ['approve', 'edit', 'retry', 'reject'],
      payload: { proposals },
    },
  );
  const answer = question({ type: 'object', properties: { title } });

  test('take the decisions that all of them offer and that need no value', () => {
    expect(commonActions([correction])).toEqual(['approve', 'retry', 'reject']);
    expect(commonActions([correction, answer])).toEqual(['reject']);
    expect(commonActions([])).toEqual([]);
  });

  test('are named by their decision', () => {
    const rows = [correction, answer].map((review) => ({ review, draft: beginRow(review) }));
    expect(describeDecisions(rows)).toBe('Decide (2)');
    expect(describeDecisions(rows.slice(0, 1))).toBe('Approve (1)');
  });

  test('end with the decided ones, the refused ones, and the next', () => {
    const refused = Array.from({ length: 5 }, (_, at) => ({ title: `T${at}`, reason: 'is claimed' }));
    expect(describeEnd({ done: 3, refused: [] }, 'T9')).toBe('Decided 3. Next: T9');
    expect(describeEnd({ done: 0, refused: refused.slice(0, 1) }, undefined)).toBe(
      'Decided 0 of 1. Refused: T0 (is claimed). No open review is left.',
    );
    expect(describeEnd({ done: 1, refused }, 'T9')).toContain('T2 (is claimed) and 2 more. Next: T9');
  });
});

test('on the page of a review, an unchanged input is not sent either, unless nothing else sends it', () => {
  const review = (actions: readonly string[]) =>
    aReview({ rate: 'x' }, { kind: 'escalation', actions, payload: { input: { rate: 'x' } } }) as never;
  const draft = { ...beginDraft(review(['edit'])), action: 'edit' as const };
  expect(whatIsMissing(draft, review(['edit', 'retry']))).toMatch(/^Nothing is changed/);
  expect(whatIsMissing({ ...draft, value: { rate: 1 } }, review(['edit', 'retry']))).toBeNull();
});

const fault = { pointer: '/target_lufs', message: 'must be number, got "-14 LUFS"' };

test.each([
  [{ validation_errors: [fault] }, 'loudness refused its input: /target_lufs must be number, got "-14 LUFS"'],
  [
    { validation_errors: [fault, fault, fault] },
    'loudness refused its input: /target_lufs must be number, got "-14 LUFS", and 2 more',
  ],
  [{ error: 'HTTP 422: rate is odd\nat line 3' }, 'loudness failed: HTTP 422: rate is odd'],
  [{}, 'as the API words it'],
])('a title has the cause of %j', (payload, title) => {
  const review = {
    kind: 'escalation',
    reason: 'as the API words it',
    payload: { job_type: 'loudness', ...payload },
  };
  expect(titleOf(review as TitledReview)).toBe(title);
});

test('a long cause is cut, and a question stays as it was asked', () => {
  const long = { job_type: 'x', error: 'y'.repeat(500) };
  expect(titleOf({ kind: 'ops', reason: '', payload: long })).toHaveLength(160);
  const asked = {
    kind: 'step',
    reason: 'May it be published?',
    payload: { job_type: 'x', error: 'z' },
  } as const;
  expect(titleOf(asked)).toBe('May it be published?');
});
