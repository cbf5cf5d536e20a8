import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  beginAsking,
  countCall,
  endAsking,
  endCall,
  giveUp,
  isLeasable,
  isOver,
  type LeaseFacts,
  leastDeclared,
  moveSlot,
  noTraffic,
  slotsToAsk,
  slotsToGrant,
} from '../../src/routing/slot-leases.ts';
import { anInstance } from './a-snapshot.ts';

const wide = { max_concurrency: 8, duration_ms: 5 };

describe('an instance whose slots may be leased', () => {
  test.each([
    [true, {}],
    [true, { duration_ms: null }],
    [true, { duration_ms: 250 }],
    [false, { duration_ms: 251 }],
    [false, { max_concurrency: 7 }],
    [false, { cost_type: 'per_call', rate_usd: 0 } as const],
    [false, { rate_usd: 0.1 }],
    [false, { state: 'suspect' } as const],
    [false, { breaker_until_ms: 1 }],
    [true, { host: null }],
    [false, { host: 'gpu-1' }],
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

describe('a call', () => {
  test('with a slot is in use, and one without is missed', () => {
    const one = countCall(noTraffic, 1_000, true);
    expect(one).toMatchObject({ used: 1, peak: 1, missed: 0, streak: 1, lastCallMs: 1_000 });
    expect(countCall(one, 1_000, false)).toMatchObject({ used: 1, peak: 1, missed: 1, streak: 2 });
    expect(countCall({ ...one, used: 0 }, 1_000, true)).toMatchObject({ used: 1, peak: 1 });
    expect(countCall({ ...one, used: 3, peak: 2 }, 1_000, false).peak).toBe(3);
  });

  test('follows another one within 50 ms', () => {
    const streakAfter = (gapMs: number) =>
      countCall({ ...noTraffic, streak: 4, lastCallMs: 1_000 }, 1_000 + gapMs, true);
    expect([streakAfter(50).streak, streakAfter(51).streak]).toEqual([5, 1]);
  });

  test('takes its slot from the lease', () => {
    const facts = { ...noTraffic, granted: 8, slots: 8, used: 3 };
    expect(moveSlot(facts)).toMatchObject({ granted: 7, slots: 7, used: 2 });
    expect(moveSlot({ ...facts, slots: 4 })).toMatchObject({ granted: 7, slots: 4, used: 2 });
    expect(moveSlot({ ...facts, granted: 0, slots: 0 })).toMatchObject({ granted: 0, slots: 0, used: 2 });
  });
});

describe('a request', () => {
  const facts = { ...noTraffic, granted: 8, slots: 8, used: 3, peak: 7, missed: 2 };

  test('resets the counts, and no call begins on more slots than it asks for', () => {
    const asking = { slots: 4, peak: 3, missed: 0, askedAtMs: 500 };
    expect(beginAsking(facts, 4, 500)).toEqual({ ...facts, ...asking });
    expect(beginAsking(facts, 16, 500)).toEqual({ ...facts, ...asking, slots: 8 });
  });

  test('gives the slots that it gets', () => {
    expect(endAsking(beginAsking(facts, 16, 500), 16, 16)).toMatchObject({ granted: 16, slots: 16 });
    expect(endAsking(beginAsking(facts, 16, 500), 16, 12)).toMatchObject({ granted: 12, slots: 12 });
    expect(endAsking(beginAsking(facts, 2, 500), 2, 3)).toMatchObject({ granted: 3, slots: 2 });
  });

  test.each([500, 501])('leaves given up what was given up meanwhile, at %i', (nowMs) => {
    const given = giveUp(beginAsking(facts, 16, 500), nowMs, 'half');
    expect(endAsking(given, 16, 16)).toMatchObject({ granted: 16, slots: 4 });
  });
});

describe('a lease is forgotten', () => {
  const over = { ...noTraffic, lastCallMs: 1_000, givesUpAtMs: 0 };
  test.each([
    ['a moment after its last call', over, 1_101, true],
    ['not at once', over, 1_100, false],
    ['not while it has slots', { ...over, granted: 1 }, 1_101, false],
    ['not while a call is running', { ...over, used: 1 }, 1_101, false],
    ['a second after it was given up', { ...over, givesUpAtMs: 1_000 }, 2_001, true],
    ['not within that second', { ...over, givesUpAtMs: 1_000 }, 2_000, false],
  ])('%s', (_, facts, nowMs, expected) => {
    expect(isOver(facts, nowMs)).toBe(expected);
  });
});

const leased: LeaseFacts = { ...noTraffic, granted: 16, slots: 16, lastCallMs: 1_000, askedAtMs: 900 };

describe('a process asks', () => {
  test.each([
    ['for none after two calls', afterCalls(2, 10), 10, null],
    ['for two after three calls in a row', afterCalls(3, 10), 20, 2],
    ['for two when one of them found none', { ...afterCalls(3, 10), missed: 1 }, 20, 2],
    ['for none when each of them found one', { ...afterCalls(3, 10), missed: 0 }, 20, null],
    ['for two when the last call is not older than 50 ms', afterCalls(3, 10), 70, 2],
    ['for none when it is', afterCalls(3, 10), 71, null],
    ['for none until 50 ms after the last request', { ...afterCalls(3, 10), askedAtMs: -29 }, 20, null],
    ['for two then', { ...afterCalls(3, 10), askedAtMs: -30 }, 20, 2],
    ['for none until a second after it gave up', { ...afterCalls(3, 10), givesUpAtMs: -979 }, 20, null],
    ['for two after that', { ...afterCalls(3, 10), givesUpAtMs: -980 }, 20, 2],
    ['for none when calls are rare', afterCalls(10, 60), 540, null],
    ['for none when the calls have ended', afterCalls(3, 10), 200, null],
    ['for none while it gives up', { ...afterCalls(3, 10), givesUpAtMs: 0 }, 20, null],
    ['for none of an instance that may not be called', { ...afterCalls(3, 10), isUsable: false }, 20, null],
    ['for no slots while the lease fits', { ...leased, used: 8 }, 1_100, null],
    ['for twice as many when calls find none', { ...leased, used: 16, missed: 1 }, 1_100, 32],
    ['for a quarter more than were in use, each half second', { ...leased, used: 2, peak: 8 }, 1_400, 10],
    ['for the next whole number of them', { ...leased, used: 2, peak: 7 }, 1_400, 9],
    ['for no slots before that', { ...leased, used: 2, peak: 8 }, 1_399, null],
    ['to give back all when it is quiet', leased, 1_201, 0],
    ['for no slots before it is quiet', leased, 1_200, null],
    [
      'to renew what is in use of an instance that is gone',
      { ...leased, used: 16, isUsable: false },
      1_400,
      0,
    ],
    ['for no slots when it gave up and time has passed', { ...leased, used: 4, slots: 8 }, 1_100, null],
    [
      'for no slots while others wait and all are in use',
      giveUp({ ...leased, used: 16 }, 1_000, 'half'),
      1_100,
      null,
    ],
    [
      'to renew no more than is left when others wait',
      giveUp({ ...leased, used: 16, peak: 16 }, 1_000, 'half'),
      1_400,
      8,
    ],
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
  test.each([
    ['as asked', { asked: 5, inUse: 0, declared: 64, others: 0 }, 5],
    ['three quarters of all', { asked: 100, inUse: 0, declared: 64, others: 0 }, 48],
    ['in whole slots', { asked: 100, inUse: 0, declared: 9, others: 0 }, 6],
    ['without those of others', { asked: 100, inUse: 0, declared: 64, others: 8 }, 40],
    ['of eight', { asked: 100, inUse: 0, declared: 8, others: 0 }, 6],
    ['none of seven', { asked: 100, inUse: 0, declared: 7, others: 0 }, 0],
    ['but those in use', { asked: 1, inUse: 3, declared: 7, others: 0 }, 3],
    ['none where others have more', { asked: 1, inUse: 0, declared: 8, others: 20 }, 0],
  ])('%s', (_, request, granted) => {
    expect(slotsToGrant(request)).toBe(granted);
  });

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
    if (kind === 'end' && facts.used > 0) this.facts = endCall(facts);
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
