import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  beginAsking,
  countCall,
  endAsking,
  giveUp,
  isLeasable,
  type LeaseFacts,
  leastDeclared,
  moveSlot,
  noTraffic,
  slotsToAsk,
  slotsToGrant,
} from '../../../src/core/routing/slot-leases.ts';
import { anInstance } from './a-snapshot.ts';

const wide = { max_concurrency: leastDeclared, duration_ms: 5 };

describe('an instance whose slots may be leased', () => {
  test.each([
    [true, {}],
    [true, { duration_ms: null }],
    [false, { max_concurrency: leastDeclared - 1 }],
    [false, { cost_type: 'per_call', rate_usd: 0.1 } as const],
    [false, { state: 'suspect' } as const],
    [false, { breaker_until_ms: 1 }],
    [false, { duration_ms: 5_000 }],
  ])('%s: %o', (expected, fields) => {
    expect(isLeasable(anInstance('a', { ...wide, ...fields }))).toBe(expected);
  });
});

/** @param gapMs between calls that find no leased slot */
function afterCalls(count: number, gapMs: number): LeaseFacts {
  let facts = noTraffic;
  for (let at = 0; at < count; at++) facts = countCall(facts, at * gapMs, false);
  return facts;
}

const leased: LeaseFacts = { ...noTraffic, granted: 16, slots: 16, lastCallMs: 1_000, askedAtMs: 900 };

describe('a process asks', () => {
  test.each([
    ['for none after two calls', afterCalls(2, 10), 10, null],
    ['for two after three calls in a row', afterCalls(3, 10), 20, 2],
    ['for none when calls are rare', afterCalls(10, 60), 540, null],
    ['for none when the calls have ended', afterCalls(3, 10), 200, null],
    ['for none while it gives up', { ...afterCalls(3, 10), givesUpAtMs: 0 }, 20, null],
    ['for none of an instance that may not be called', { ...afterCalls(3, 10), isUsable: false }, 20, null],
    ['for nothing while the lease fits', { ...leased, used: 8 }, 1_100, null],
    ['for twice as many when calls find none', { ...leased, used: 16, missed: 1 }, 1_100, 32],
    ['for a quarter more than were in use, each half second', { ...leased, used: 2, peak: 8 }, 1_400, 10],
    ['to give back all when it is quiet', leased, 1_300, 0],
    [
      'to give back what is not in use when the instance is gone',
      { ...leased, used: 3, isUsable: false },
      1_100,
      0,
    ],
    ['to give back half when others wait', giveUp({ ...leased, used: 2 }, 1_000, 'half'), 1_000, 8],
    [
      'for no more meanwhile',
      giveUp({ ...leased, granted: 8, used: 8, missed: 9 }, 900, 'half'),
      1_000,
      null,
    ],
    ['to give back all when a call failed', giveUp({ ...leased, used: 2 }, 1_000, 'none'), 1_000, 0],
  ] as const)('%s', (_, facts, nowMs, asked) => {
    expect(slotsToAsk(facts, nowMs)).toBe(asked);
  });
});

const count = fc.nat({ max: 1_000 });

describe('slots that are granted', () => {
  test('never fill more than three quarters of what is declared, except slots in use', () => {
    fc.assert(
      fc.property(count, count, count, fc.nat(1_000), (asked, declared, others, share) => {
        const inUse = Math.min(share, Math.max(0, declared - others));
        const granted = slotsToGrant({ asked, inUse, declared, others });
        expect(granted).toBeGreaterThanOrEqual(inUse);
        expect(granted + others).toBeLessThanOrEqual(Math.max(declared, others));
        if (granted > inUse) {
          expect(declared).toBeGreaterThanOrEqual(leastDeclared);
          expect(granted).toBeLessThanOrEqual(Math.min(asked, (3 * declared) / 4 - others));
        }
      }),
    );
  });
});

type Act = 'call' | 'end' | 'move' | 'wait' | 'ask' | 'answer' | 'wanted' | 'failed' | 'gone';
const act = fc.oneof(
  { weight: 12, arbitrary: fc.constant<Act>('call') },
  { weight: 6, arbitrary: fc.constantFrom<Act>('ask', 'answer') },
  { weight: 6, arbitrary: fc.constantFrom<Act>('end', 'move', 'wait') },
  { weight: 1, arbitrary: fc.constantFrom<Act>('wanted', 'failed', 'gone') },
);

/** One process and the row of its lease, as the database changes it. */
class Play {
  facts: LeaseFacts = noTraffic;
  row = 0;
  nowMs = 0;
  #sent: { readonly asked: number; readonly inUse: number } | null = null;

  act(kind: Act): void {
    const { facts } = this;
    if (kind === 'call') this.facts = countCall(facts, this.nowMs, facts.used < facts.slots);
    if (kind === 'end' && facts.used > 0) this.facts = { ...facts, used: facts.used - 1 };
    if (kind === 'move' && facts.used > 0 && this.#sent === null) {
      this.facts = moveSlot(facts);
      this.row -= 1;
    }
    if (kind === 'wait') this.nowMs += 60;
    if (kind === 'wanted') this.facts = giveUp(facts, this.nowMs, 'half');
    if (kind === 'failed') this.#fail();
    if (kind === 'gone') this.facts = { ...facts, isUsable: !facts.isUsable };
    if (kind === 'ask') this.#ask();
    if (kind === 'answer') this.#answer();
  }

  /** Until the next request, no call begins on the lease. */
  #fail(): void {
    this.nowMs += 1;
    this.facts = giveUp(this.facts, this.nowMs, 'none');
    this.#answer();
    expect(this.facts.slots).toBe(0);
  }

  #ask(): void {
    const asked = this.#sent === null ? slotsToAsk(this.facts, this.nowMs) : null;
    if (asked === null) return;
    this.facts = beginAsking(this.facts, asked, this.nowMs);
    this.#sent = { asked, inUse: Math.max(this.facts.slots, this.facts.used) };
  }

  #answer(): void {
    if (this.#sent === null) return;
    const { asked, inUse } = this.#sent;
    this.#sent = null;
    const declared = this.facts.isUsable ? 64 : 0;
    this.row = slotsToGrant({ asked, inUse: Math.min(this.row, inUse), declared, others: 8 });
    this.facts = endAsking(this.facts, asked, this.row);
  }
}

describe('whatever happens', () => {
  test('calls on a lease never exceed its row, and a quiet process gives everything back', () => {
    fc.assert(
      fc.property(fc.array(act, { minLength: 50, maxLength: 200, size: 'max' }), (acts) => {
        const play = new Play();
        for (const kind of acts) {
          play.act(kind);
          expect(play.facts.used).toBeLessThanOrEqual(play.row);
        }
        while (play.facts.used > 0) play.act('end');
        play.act('answer');
        for (const kind of ['wait', 'wait', 'wait', 'wait', 'ask', 'answer'] as const) play.act(kind);
        expect(play.row).toBe(0);
      }),
    );
  });

  test('a process that others wait for comes down to half of its slots as its calls end', () => {
    const play = new Play();
    Object.assign(play, { row: 16, facts: { ...leased, used: 16 }, nowMs: 1_000 });
    play.act('wanted');
    for (let calls = 0; calls < 8; calls++) {
      for (const kind of ['end', 'call', 'wait', 'ask', 'answer'] as const) play.act(kind);
    }
    expect([play.facts.used, play.row]).toEqual([8, 8]);
  });
});
