import { describe, expect, it } from 'vitest';
import { type AskedReview, followStop, mayAsk } from '../../src/ladder/human-review.ts';
import { ladderMs, reviewDueMs } from '../../src/ladder/levels.ts';

const stopped = {
  reason: 'no_advisor',
  error: 'rate is odd',
  policy: { repair: 'propose', on_exhausted: 'wait' },
  jobType: 'transcode',
} as const;

function asked(change: Partial<AskedReview> = {}): AskedReview {
  return { kind: 'escalation', round: 1, isResolved: true, ...change };
}

describe('a ladder that stopped', () => {
  it('asks a person, with what was seen last', () => {
    expect(followStop(stopped, null)).toEqual({
      kind: 'ask',
      review: 'escalation',
      reason: 'transcode failed and needs a person: no model is there to ask',
      error: {
        code: 'ladder_exhausted',
        message: expect.stringMatching(/human review is required: no model .*; last error: rate is odd$/),
        details: { reason: 'no_advisor' },
      },
    });
  });

  it.each([
    ['the same review again when its decision did not help', asked(), { kind: 'ask_again', round: 1 }],
    ['a third time', asked({ round: 2 }), { kind: 'ask_again', round: 2 }],
    ['no person a fourth time', asked({ round: 3 }), { kind: 'end', state: 'failed' }],
    ['again without a decision', asked({ isResolved: false }), { kind: 'ask' }],
    ['again about another matter', asked({ kind: 'budget', round: 3 }), { kind: 'ask' }],
  ] as const)('asks %s', (_, last, consequence) => {
    expect(followStop(stopped, last)).toMatchObject(consequence);
  });

  it('names the time when it asks again', () => {
    expect(followStop(stopped, asked())).toMatchObject({
      reason: 'transcode failed and needs a person: no model is there to ask; the last decision did not help',
    });
  });

  it('fails at once where its pipeline asks for it, and is cancelled where no step waits for it', () => {
    const fails = { ...stopped, policy: { repair: 'propose', on_exhausted: 'fail' } } as const;
    expect(followStop(fails, null)).toMatchObject({
      kind: 'end',
      state: 'failed',
      error: {
        code: 'ladder_exhausted',
        message:
          'rate is odd; the escalation ladder is exhausted and human review is required, but on_exhausted is fail, so no review was opened: no model is there to ask',
      },
    });
    expect(followStop({ ...fails, error: null }, null)).toMatchObject({
      error: { message: expect.stringMatching(/^the escalation ladder is exhausted/) },
    });
    expect(followStop({ ...fails, reason: 'cancelled' }, null)).toMatchObject({
      kind: 'end',
      state: 'cancelled',
    });
    expect([mayAsk(stopped), mayAsk(fails), mayAsk({ ...stopped, reason: 'cancelled' })]).toEqual([
      true,
      false,
      false,
    ]);
  });

  it('of a job by itself always asks', () => {
    expect(followStop({ ...stopped, policy: null }, null)).toMatchObject({ kind: 'ask' });
  });
});

it('a ladder works by itself for half an hour', () => {
  expect(ladderMs).toBe(1_800_000);
});

it('a review of an interactive run is due within the hour, others within a day', () => {
  expect([reviewDueMs('interactive'), reviewDueMs('standard'), reviewDueMs('batch')]).toEqual([
    3_600_000, 86_400_000, 86_400_000,
  ]);
});
