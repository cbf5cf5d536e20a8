import { describe, expect, it } from 'vitest';
import { daysAt, reserveAt } from '../../support/budgets.ts';
import { useDatabase } from '../../support/database.ts';
import { aClaim, anInstance, aProject, aRun } from '../../support/factories.ts';

const { db } = useDatabase(2);

async function aClaimIn(timezone: string, daily_limit_nano = 0n) {
  const { project_id } = await aProject(db, { timezone, daily_limit_nano });
  const run = await aRun(db, { project_id });
  return aClaim(run, await anInstance(db), { reserved_nano: 1n });
}

/** zone, moment, its local day, when that day ends */
const cases = [
  ['UTC', '2026-03-01T23:59:59.999Z', '2026-03-01', '2026-03-02T00:00:00Z'],
  ['UTC', '2026-03-02T00:00:00Z', '2026-03-02', '2026-03-03T00:00:00Z'],
  ['Pacific/Kiritimati', '2026-03-01T09:59:59Z', '2026-03-01', '2026-03-01T10:00:00Z'],
  ['Pacific/Kiritimati', '2026-03-01T10:00:00Z', '2026-03-02', '2026-03-02T10:00:00Z'],
  ['Pacific/Pago_Pago', '2026-03-01T10:59:59Z', '2026-02-28', '2026-03-01T11:00:00Z'],
  ['Pacific/Pago_Pago', '2026-03-01T11:00:00Z', '2026-03-01', '2026-03-02T11:00:00Z'],
  ['Asia/Kathmandu', '2026-03-01T18:15:00Z', '2026-03-02', '2026-03-02T18:15:00Z'],
  // 23 and 25 hours
  ['Europe/Berlin', '2026-03-28T23:00:00Z', '2026-03-29', '2026-03-29T22:00:00Z'],
  ['Europe/Berlin', '2026-10-24T22:00:00Z', '2026-10-25', '2026-10-25T23:00:00Z'],
  ['America/New_York', '2026-03-08T05:00:00Z', '2026-03-08', '2026-03-09T04:00:00Z'],
  ['America/New_York', '2026-11-02T04:59:59Z', '2026-11-01', '2026-11-02T05:00:00Z'],
  // half an hour
  ['Australia/Lord_Howe', '2026-04-04T13:00:00Z', '2026-04-05', '2026-04-05T13:30:00Z'],
  // The day begins at 01:00, for there is no midnight.
  ['Asia/Beirut', '2025-03-29T21:59:59Z', '2025-03-29', '2025-03-29T22:00:00Z'],
  ['Asia/Beirut', '2025-03-29T22:00:00Z', '2025-03-30', '2025-03-30T21:00:00Z'],
  // Midnight comes twice; the day begins with the first.
  ['America/Havana', '2025-11-02T03:59:59Z', '2025-11-01', '2025-11-02T04:00:00Z'],
  ['America/Havana', '2025-11-02T04:30:00Z', '2025-11-02', '2025-11-03T05:00:00Z'],
  // Clocks go back from midnight to 23:00, which comes twice.
  ['America/Santiago', '2025-04-06T02:30:00Z', '2025-04-05', '2025-04-06T04:00:00Z'],
  ['America/Santiago', '2025-04-06T03:30:00Z', '2025-04-05', '2025-04-06T04:00:00Z'],
  // A day that was left out.
  ['Pacific/Apia', '2011-12-30T09:59:59Z', '2011-12-29', '2011-12-30T10:00:00Z'],
] as const;

describe('a day of a project', () => {
  it.each(cases)('in %s at %s is %s', async (timezone, at, day) => {
    const claim = await aClaimIn(timezone);
    expect(await daysAt(db, claim, at)).toEqual({
      global: at.slice(0, 10),
      [`project:${claim.project_id}`]: day,
      [`capability:${claim.project_id}:concat`]: day,
      [`run:${claim.step?.run_id}`]: '-infinity',
    });
  });

  it.each(cases)('in %s at %s has its own limit, which resets at its end', async (timezone, at, _, ends) => {
    const claim = await aClaimIn(timezone, 1n);
    expect(await reserveAt(db, [claim], at)).toBeNull();
    const refusal = await reserveAt(db, [claim], at);
    expect(refusal).toMatchObject({ scope: 'project', limit_nano: '1', reserved_nano: '1' });
    expect(new Date(refusal.resets_at).toISOString()).toBe(new Date(ends).toISOString());
    const lastMoment = new Date(Date.parse(ends) - 1).toISOString();
    expect(await reserveAt(db, [claim], lastMoment)).toMatchObject({ scope: 'project' });
    expect(await reserveAt(db, [claim], ends)).toBeNull();
  });
});
