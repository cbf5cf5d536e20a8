import { expect, test } from 'vitest';
import type { TemporalStanding } from '../../../src/clients/temporal/schedules.ts';
import type { ScheduleRow } from '../../../src/db/schedule.ts';
import { createAskStanding } from '../../../src/parts/delivery/schedule-standing.ts';

function aRow(n: number, version = 1): ScheduleRow {
  return { schedule_id: `sched_${n}`, version } as ScheduleRow;
}

/** A Temporal that answers at the command of the test. */
function temporal() {
  const asked: string[] = [];
  const answers: ((standing: TemporalStanding | null) => void)[] = [];
  return {
    asked,
    answers,
    standing: (key: { readonly workflow_id: string }) =>
      new Promise<TemporalStanding | null>((resolve) => {
        asked.push((key as ScheduleRow).schedule_id);
        answers.push(resolve);
      }),
  };
}

const settle = () => new Promise(setImmediate);
const active: TemporalStanding = { paused: null };

test('eight schedules are asked about at once, for any number of lists, and each once for all', async () => {
  const { asked, answers, ...schedules } = temporal();
  const standing = createAskStanding(schedules, { now: () => 0 });
  const rows = Array.from({ length: 20 }, (_, n) => aRow(n));
  const lists = [1, 2].map(() => Promise.all(rows.map((row) => standing(row, 2_000))));
  await settle();
  expect(asked).toHaveLength(8);
  for (let n = 0; n < 20; n++) {
    answers[n]?.(active);
    await settle();
    expect(asked.length - n - 1).toBeLessThanOrEqual(8);
  }
  expect(asked).toHaveLength(20);
  expect(await Promise.all(lists)).toEqual([rows.map(() => active), rows.map(() => active)]);
});

test('an answer is kept for some seconds; a changed schedule is asked about', async () => {
  const { asked, answers, ...schedules } = temporal();
  let now = 0;
  const standing = createAskStanding(schedules, { now: () => now });
  const first = standing(aRow(1), 2_000);
  answers[0]?.(active);
  await first;
  now = 6_000;
  expect(await standing(aRow(1), 2_000)).toEqual(active);
  void standing(aRow(1, 2), 2_000);
  now = 11_000;
  void standing(aRow(1), 2_000);
  expect(asked).toHaveLength(3);
});

test('a schedule without an answer of Temporal is asked about again; a caller that waits too long receives an error', async () => {
  let now = 0;
  let answer = (): Promise<null> => Promise.resolve(null);
  const standing = createAskStanding({ standing: () => answer() }, { now: () => now });
  expect(await standing(aRow(1), 2_000)).toBeNull();
  answer = () => Promise.reject(new Error('away'));
  await expect(standing(aRow(1), 2_000)).rejects.toThrow('away');
  const ends: (() => void)[] = [];
  answer = () => new Promise((resolve) => ends.push(() => resolve(null)));
  const all = Array.from({ length: 9 }, (_, n) => standing(aRow(n), 2_000));
  await settle();
  now = 3_000;
  for (const end of ends) end();
  await expect(all[8]).rejects.toThrow('not asked in time');
});
