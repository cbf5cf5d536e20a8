import { describe, expect, it } from 'vitest';
import {
  countedErrors,
  hasFailedCall,
  isExhausted,
  judgeOutcome,
  type Verdict,
} from '../../src/call/judge.ts';
import type { CallOutcome } from '../../src/call/outcome.ts';

type Evidence = Pick<Verdict, 'blames' | 'trips' | 'says'>;
type Shared = Omit<Verdict, 'next' | 'error' | 'counted' | keyof Evidence> & { readonly counted?: boolean };
type End = [next: Verdict['next'], code: string | null, message?: string, status?: number];

const once = 'retry.max is 0, so it is not sent again';

/** What holds however often it happened. */
const answered: Shared = { ambiguity: 'answered', attemptState: 'settled', settlement: 'answered' };
const refused: Shared = { ambiguity: 'rejected', attemptState: 'settled', settlement: 'failed' };
const broken: Shared = {
  ambiguity: 'answered',
  attemptState: 'settled',
  settlement: 'failed',
  counted: true,
};
const lost: Shared = { ambiguity: 'ambiguous', attemptState: 'lost', settlement: 'lost', counted: true };
function unread(ambiguity: Verdict['ambiguity']): Shared {
  return {
    ambiguity,
    attemptState: 'released',
    settlement: 'not_sent',
  };
}

function same(...end: End): [End, End, End] {
  return [end, end, end];
}

/** Outcome, what holds always, and the end with retry.max 0, with a retry left, and with none left. */
const table: [CallOutcome, Shared, [never: End, left: End, exhausted: End]][] = [
  [{ kind: 'answered', body: { a: 1 } }, answered, same('succeeded', null)],
  [
    { kind: 'rejected', status: 422, message: 'no such codec' },
    refused,
    same('failed', 'input_rejected', 'HTTP 422: no such codec', 422),
  ],
  ...[408, 409].map((status): [CallOutcome, Shared, [End, End, End]] => [
    { kind: 'rejected', status, message: 'later' },
    { ...refused, counted: true },
    [
      ['failed', 'capability_failed', `HTTP ${status}: later`, status],
      ['failover', 'capability_failed', `HTTP ${status}: later`, status],
      ['failed', 'capability_failed', `HTTP ${status}: later`, status],
    ],
  ]),
  [
    { kind: 'output_invalid', message: '/a is missing' },
    answered,
    same('failed', 'output_invalid', '/a is missing'),
  ],
  [
    { kind: 'too_large', limitBytes: 16 },
    answered,
    same(
      'failed',
      'output_too_large',
      'the answer is larger than 16 bytes; write large data to the media store',
    ),
  ],
  [
    { kind: 'failed', status: 500, message: 'out of memory' },
    broken,
    [
      ['failed', 'capability_failed', 'HTTP 500: out of memory', 500],
      ['failover', 'capability_failed', 'HTTP 500: out of memory', 500],
      ['failed', 'capability_failed', 'HTTP 500: out of memory', 500],
    ],
  ],
  [
    { kind: 'invalid', message: 'HTML' },
    broken,
    [
      ['failed', 'response_invalid', 'HTML'],
      ['failover', 'response_invalid', 'HTML'],
      ['failed', 'response_invalid', 'HTML'],
    ],
  ],
  [
    { kind: 'malformed', message: 'a list' },
    { ...broken, settlement: 'broken_off', counted: false },
    same('failed', 'response_invalid', 'a list'),
  ],
  [
    { kind: 'lost', message: 'it broke' },
    lost,
    [
      ['unknown', 'delivery_unknown', `it broke; ${once}`],
      ['retry', 'contact_lost', 'it broke'],
      ['failed', 'contact_lost', 'it broke'],
    ],
  ],
  [
    { kind: 'timeout', timeoutMs: 500 },
    lost,
    [
      ['unknown', 'delivery_unknown', `no answer within 500 ms; ${once}`],
      ['retry', 'attempt_timeout', 'no answer within 500 ms'],
      ['failed', 'attempt_timeout', 'no answer within 500 ms'],
    ],
  ],
  [
    { kind: 'overloaded', status: 429, retryAfterMs: 1_000 },
    unread('overloaded'),
    same('failover', 'overloaded', 'the instance refuses work for now (HTTP 429)'),
  ],
  [
    { kind: 'not_sent', message: 'no connection (ECONNREFUSED)' },
    unread('not_sent'),
    same('failover', 'connect_failed', 'no connection (ECONNREFUSED)'),
  ],
  [
    { kind: 'cancelled' },
    { ...lost, counted: false },
    same('cancelled', 'run_cancelled', 'the call was cancelled'),
  ],
];

const positions: [where: string, facts: { countedBefore: number; retryMax: number }, column: 0 | 1 | 2][] = [
  ['delivered at most once', { countedBefore: 0, retryMax: 0 }, 0],
  ['with all retries left', { countedBefore: 0, retryMax: 3 }, 1],
  ['with one retry left', { countedBefore: 2, retryMax: 3 }, 1],
  ['with no retry left', { countedBefore: 3, retryMax: 3 }, 2],
  ['after more failures than retries', { countedBefore: 9, retryMax: 3 }, 2],
];

function verdict(shared: Shared, [next, code, message, status]: End) {
  return {
    counted: false,
    ...shared,
    next,
    error: code === null ? null : { code, message, ...(status === undefined ? {} : { status }) },
  };
}

/**
 * The evidence of the end about the instance: whether it failed, whether that opens a breaker, whether it is evidence
 * at all.
 */
const evidence: Record<CallOutcome['kind'], [blames: boolean, trips: boolean, says: boolean]> = {
  answered: [false, false, true],
  rejected: [false, false, true],
  too_large: [false, false, true],
  malformed: [true, false, true],
  output_invalid: [true, false, true],
  failed: [true, true, true],
  invalid: [true, true, true],
  lost: [true, true, true],
  timeout: [true, true, true],
  not_sent: [true, true, true],
  overloaded: [false, true, true],
  cancelled: [false, false, false],
  withheld: [false, false, false],
  unsent: [false, false, false],
  exhausted: [false, false, false],
  abandoned: [false, false, false],
};

function evidenceOf(kind: CallOutcome['kind']): Evidence {
  const [blames, trips, says] = evidence[kind];
  return { blames, trips, says };
}

describe('judgeOutcome', () => {
  describe.each(positions)('%s', (_, facts, column) => {
    it.each(table)('$kind', (outcome, shared, ends) => {
      expect(judgeOutcome(outcome, facts)).toEqual({
        ...verdict(shared, ends[column]),
        ...evidenceOf(outcome.kind),
      });
    });
  });

  it.each([
    [{ countedBefore: 1, retryMax: 0 }, 'unknown', 'delivery_unknown'],
    [{ countedBefore: 4, retryMax: 3 }, 'failed', 'contact_lost'],
  ] as const)('a call whose lost attempts used up the retries (%j) is withheld', (facts, next, code) => {
    expect(isExhausted(facts)).toBe(true);
    expect(judgeOutcome({ kind: 'withheld' }, facts)).toMatchObject({
      ambiguity: 'not_sent',
      attemptState: 'released',
      settlement: 'not_sent',
      counted: false,
      next,
      error: { code },
    });
  });

  it.each([
    [{ countedBefore: 4, retryMax: 3 }, 'contact was lost 4 times; retry.max is 3'],
    [{ countedBefore: 1, retryMax: 0 }, `contact was lost after it was sent; ${once}`],
  ])('a call that is withheld (%j) counts the lost contacts in its message', (facts, message) => {
    expect(judgeOutcome({ kind: 'withheld' }, facts).error?.message).toBe(message);
  });

  it('a call that was stopped before it was sent is made later', () => {
    expect(judgeOutcome({ kind: 'unsent' }, { countedBefore: 0, retryMax: 0 })).toEqual({
      ...evidenceOf('unsent'),
      ...verdict(unread('not_sent'), ['retry', 'connect_failed', 'the call was stopped before it was sent']),
    });
  });

  it.each(positions)('an abandoned call %s is not held against the capability', (_, facts, column) => {
    const error = 'the worker that made the call stopped';
    expect(judgeOutcome({ kind: 'abandoned' }, facts)).toEqual({
      ...evidenceOf('abandoned'),
      ...(column === 0
        ? verdict(lost, ['unknown', 'delivery_unknown', `${error}; ${once}`])
        : verdict({ ...lost, counted: false }, ['retry', 'contact_lost', error])),
    });
  });

  it.each<[outcome: CallOutcome, settlement: Verdict['settlement']]>([
    [{ kind: 'rejected', status: 422, message: 'no JSON' }, 'broken_off'],
    [{ kind: 'rejected', status: 408, message: 'later' }, 'broken_off'],
    [{ kind: 'failed', status: 502, message: 'cut' }, 'broken_off'],
    [{ kind: 'invalid', message: 'an empty body' }, 'broken_off'],
    [{ kind: 'overloaded', status: 503, retryAfterMs: null }, 'broken_off'],
    [{ kind: 'output_invalid', message: '/a' }, 'answered'],
    [{ kind: 'lost', message: 'reset' }, 'lost'],
    [{ kind: 'timeout', timeoutMs: 1 }, 'lost'],
    [{ kind: 'cancelled' }, 'lost'],
    [{ kind: 'not_sent', message: 'refused' }, 'not_sent'],
  ])('parts of the result prove work: %j is %s', (outcome, settlement) => {
    const facts = { countedBefore: 0, retryMax: 3 };
    const { attemptState, settlement: usual, ...rest } = judgeOutcome(outcome, facts);
    const begun = judgeOutcome(outcome, { ...facts, hasBegun: true });
    expect(begun).toMatchObject({ ...rest, settlement });
    expect(begun.attemptState).toBe(
      settlement === usual
        ? attemptState
        : ({ lost: 'lost', not_sent: 'released' }[settlement as string] ?? 'settled'),
    );
  });

  it('a call that was stopped, because its budgets have no more room, is made again later', () => {
    expect(judgeOutcome({ kind: 'exhausted' }, { countedBefore: 0, retryMax: 3 })).toEqual({
      ...evidenceOf('exhausted'),
      ...verdict({ ambiguity: 'answered', attemptState: 'settled', settlement: 'broken_off' }, [
        'retry',
        'budget_reserved',
        'the call was stopped on its way, because its budgets have no more room for it',
      ]),
    });
  });

  it('a refusal for now has the words of the instance', () => {
    const refused = {
      kind: 'overloaded',
      status: 429,
      retryAfterMs: null,
      message: 'the quota is used up',
    } as const;
    expect(judgeOutcome(refused, { countedBefore: 0, retryMax: 3 }).error?.message).toBe(
      'the instance refuses work for now (HTTP 429: the quota is used up)',
    );
  });

  it('a refusal for now with a cost is a call that was sent', () => {
    const facts = { countedBefore: 0, retryMax: 3 };
    const refused: CallOutcome = { kind: 'overloaded', status: 429, retryAfterMs: 5 };
    expect(judgeOutcome({ ...refused, report: { cost_usd: 0.1 } }, facts)).toMatchObject({
      settlement: 'failed',
      attemptState: 'settled',
      next: 'failover',
    });
    expect(judgeOutcome({ ...refused, report: {} }, facts).settlement).toBe('not_sent');
  });

  it('a refusal passes when the operator has listed a part of its message', () => {
    const facts = { countedBefore: 0, retryMax: 3, transientTexts: ['gpu memory', 'rate limit'] };
    const judge = (message: string) => {
      const { next, counted, error } = judgeOutcome({ kind: 'rejected', status: 422, message }, facts);
      return [next, counted, error?.code];
    };
    expect(judge('Out of GPU memory, 3 wait')).toEqual(['failover', true, 'capability_failed']);
    expect(judge('n must be even')).toEqual(['failed', false, 'input_rejected']);
  });

  it('that counts against retry.max has an error of the counted codes', () => {
    const facts = { countedBefore: 0, retryMax: 3 };
    const counted = table.map(([outcome]) => judgeOutcome(outcome, facts)).filter((one) => one.counted);
    expect(countedErrors).toEqual(new Set(counted.map(({ error }) => error?.code)));
  });

  it('R6: an instance has failed the call when it was asked and did not do it', () => {
    const kinds = table.map(([outcome]) => outcome);
    const others: CallOutcome[] = [{ kind: 'withheld' }, { kind: 'unsent' }, { kind: 'abandoned' }];
    const facts = { countedBefore: 0, retryMax: 3 };
    const blameless = [...kinds, ...others].filter((outcome) => !hasFailedCall(judgeOutcome(outcome, facts)));
    expect(blameless.map(({ kind }) => kind)).toEqual([
      'answered',
      'cancelled',
      'withheld',
      'unsent',
      'abandoned',
    ]);
  });
});
