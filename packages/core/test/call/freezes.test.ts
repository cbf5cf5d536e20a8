import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Arrival, beatMs, catchUpMs, FreezeLog, lateMs, neverFrozen } from '../../src/call/freezes.ts';

const wall0 = 1_700_000_000_000;

/** Beats on time until `untilMs`. */
function aLog(untilMs = 10_000): FreezeLog {
  const log = new FreezeLog(0, wall0);
  for (let at = beatMs; at <= untilMs; at += beatMs) log.beat(at, wall0 + at);
  return log;
}

function look(log: FreezeLog, atMs: number, ...arrivals: Arrival[]): void {
  log.note({ atMs, arrivals });
}

describe('a process', () => {
  it('that beats on time is never frozen', () => {
    const log = aLog();
    expect(log.beat(10_000 + beatMs + lateMs, wall0)).toBe(0);
    expect(log.arrivedAt(10_300, {})).toBe(10_300);
    expect(log.isCatchingUp(10_300)).toBe(false);
  });

  it('is frozen from its last beat to the late one, which need not have come yet', () => {
    const log = aLog();
    expect(log.isCatchingUp(60_000)).toBe(true);
    expect(log.arrivedAt(60_000, {})).toBe(10_000);
    expect(log.beat(60_000, wall0 + 60_000)).toBe(50_000);
    expect(log.arrivedAt(60_000 + catchUpMs, {})).toBe(10_000);
    expect(log.awakeMs(60_100)).toBe(100);
  });

  it('is frozen from its beginning until its first beat', () => {
    const log = new FreezeLog(5_000, wall0);
    expect([log.isCatchingUp(5_000 + beatMs + lateMs), log.isCatchingUp(5_001 + beatMs + lateMs)]).toEqual([
      false,
      true,
    ]);
    expect(log.arrivedAt(9_000, {})).toBe(5_000);
    expect(log.awakeMs(9_000)).toBe(0);
    expect(log.beat(9_000, wall0 + 4_000)).toBe(4_000);
  });

  it('that never was asleep has been awake for ever', () => {
    const log = aLog();
    expect([log.awakeMs(10_050), log.isCatchingUp(10_050)]).toEqual([Number.POSITIVE_INFINITY, false]);
  });

  it('that is not watched was never frozen', () => {
    expect([neverFrozen.arrivedAt(7, {}), neverFrozen.isCatchingUp(7), neverFrozen.awakeMs(7)]).toEqual([
      7,
      false,
      Number.POSITIVE_INFINITY,
    ]);
  });

  it('that has caught up reads when it reads', () => {
    const log = aLog();
    log.beat(60_000, wall0 + 60_000);
    log.beat(60_000 + beatMs, wall0);
    const now = 60_001 + catchUpMs;
    expect([log.isCatchingUp(now), log.arrivedAt(now, { connection: 'a', saidMs: 20_000 })]).toEqual([
      false,
      now,
    ]);
  });

  it.each([
    ['a second is no sleep', 1_000, Number.POSITIVE_INFINITY],
    ['more than a second is one', 1_001, 100],
  ])('on a machine whose clock moves on beside its own: %s', (_, moreMs, awakeMs) => {
    const log = new FreezeLog(5_000, wall0);
    log.beat(5_100, wall0 + 100 + moreMs);
    expect(log.awakeMs(5_200)).toBe(awakeMs);
    log.beat(5_200, wall0 + 200 + moreMs);
    expect(log.awakeMs(5_250)).toBe(awakeMs + (awakeMs === 100 ? 50 : 0));
  });

  it('on a machine that slept is awake since its next beat, and was not frozen', () => {
    const log = aLog();
    expect(log.beat(10_100, wall0 + 3_600_000)).toBe(0);
    expect(log.awakeMs(10_300)).toBe(200);
    expect(log.isCatchingUp(10_100)).toBe(false);
  });
});

describe('what arrived in a freeze', () => {
  const frozen = (): FreezeLog => aLog();

  it('counts from the mark of its connection', () => {
    const log = frozen();
    look(log, 12_900);
    look(log, 13_000, { connection: 'a', afterMs: 12_900, byMs: 13_000 });
    look(log, 59_900, { connection: 'b', afterMs: 59_800, byMs: 59_900 });
    log.beat(60_000, wall0);
    expect(log.arrivedAt(60_010, { connection: 'a', saidMs: 50_000 })).toBe(13_000);
    expect(log.arrivedAt(60_010, { connection: 'b' })).toBe(59_900);
  });

  it('without a mark had not come by the last look', () => {
    const log = frozen();
    look(log, 59_900);
    log.beat(60_000, wall0);
    expect(log.arrivedAt(60_010, { connection: 'a' })).toBe(59_900);
    expect(log.arrivedAt(60_010, {})).toBe(59_900);
  });

  it('of a process that was stopped counts from the time that its sender reports, within known bounds', () => {
    const log = frozen();
    look(log, 10_050);
    look(log, 59_990, { connection: 'a', afterMs: 10_050, byMs: 59_990 });
    log.beat(60_000, wall0);
    const at = (saidMs?: number) => log.arrivedAt(60_010, { connection: 'a', saidMs });
    expect([at(13_000), at(1), at(99_000), at()]).toEqual([13_000, 10_050, 59_990, 10_050]);
    expect(log.arrivedAt(60_010, { connection: 'b', saidMs: 13_000 })).toBe(59_990);
  });

  it('is remembered through the beats of the catch-up', () => {
    const log = frozen();
    look(log, 13_000, { connection: 'a', afterMs: 12_900, byMs: 13_000 });
    look(log, 59_900);
    for (const at of [60_000, 60_100, 60_200]) log.beat(at, wall0 + at);
    expect(log.arrivedAt(60_210, { connection: 'a' })).toBe(13_000);
  });

  it.each([
    ['looks half a second apart are as good as a mark', 12_500, 13_000],
    ['beyond that the sender is better', 12_499, 12_700],
  ])('%s', (_, afterMs, arrivedMs) => {
    const log = frozen();
    look(log, 13_000, { connection: 'a', afterMs, byMs: 13_000 });
    log.beat(60_000, wall0 + 60_000);
    expect(log.arrivedAt(60_010, { connection: 'a', saidMs: 12_700 })).toBe(arrivedMs);
  });

  it('has no mark of the last beat before the freeze', () => {
    const log = frozen();
    look(log, 10_000, { connection: 'a', afterMs: 9_950, byMs: 10_000 });
    look(log, 12_000);
    log.beat(60_000, wall0 + 60_000);
    expect(log.arrivedAt(60_010, { connection: 'a' })).toBe(12_000);
  });

  it('is forgotten before the next one', () => {
    const log = frozen();
    look(log, 13_000, { connection: 'a', afterMs: 12_900, byMs: 13_000 });
    for (let at = 20_000; at <= 30_000; at += beatMs) log.beat(at, wall0 + at);
    log.beat(40_000, wall0 + 40_000);
    expect(log.arrivedAt(40_000, { connection: 'a' })).toBe(30_000);
  });
});

it('nothing arrives before the freeze it is read after, nor after it is read (F3)', () => {
  const time = fc.integer({ min: 10_000, max: 60_200 });
  const reading = fc.record({
    connection: fc.constantFrom('a', 'b'),
    saidMs: fc.option(time, { nil: undefined }),
  });
  fc.assert(
    fc.property(
      fc.array(fc.tuple(time, fc.nat(5_000)), { maxLength: 5 }),
      reading,
      fc.nat(200),
      (looks, read, later) => {
        const log = aLog();
        for (const [byMs, length] of [...looks].sort(([a], [b]) => a - b))
          look(log, byMs, { connection: 'a', afterMs: byMs - length, byMs });
        log.beat(60_000, wall0);
        const arrivedMs = log.arrivedAt(60_000 + later, read);
        expect(arrivedMs).toBeGreaterThanOrEqual(10_000);
        expect(arrivedMs).toBeLessThanOrEqual(60_000 + later);
      },
    ),
  );
});
