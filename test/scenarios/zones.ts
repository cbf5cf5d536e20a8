/** Zones made for a moment, in the words of POSIX: a day ends when a test needs it, by the real clock. */

const dayS = 86_400;
export type Midnight = 'plain' | 'skipped' | 'twice';

/** East of Greenwich is negative there. */
function offset(eastS: number): string {
  const [hours, minutes, seconds] = [3_600, 60, 1].map((unit, at, units) =>
    Math.floor((Math.abs(eastS) % (units[at - 1] ?? Number.POSITIVE_INFINITY)) / unit),
  );
  return `${eastS > 0 ? '-' : ''}${hours}:${minutes}:${seconds}`;
}

/** The first second of the present day there, in UTC. */
export function startOfToday(): number {
  return Math.floor(Date.now() / 1_000 / dayS) * dayS;
}

/** It is noon of that day there. */
export function zoneAtNoon(dayStartS: number): string {
  return `<noon>${offset(dayStartS + dayS / 2 - Math.floor(Date.now() / 1_000))}`;
}

/**
 * Where that day ends at a moment. skipped: clocks go from there to 01:00. twice: an hour later they go back to it.
 * @param endS a whole second
 */
export function zoneWhereItEnds(dayStartS: number, endS: number, midnight: Midnight): string {
  const eastS = dayStartS + dayS - endS;
  if (midnight === 'plain') return `<plain>${offset(eastS)}`;
  const next = new Date((dayStartS + dayS) * 1_000);
  const day = (next.getTime() - Date.UTC(next.getUTCFullYear(), 0, 1)) / 1_000 / dayS;
  const farDay = (day + 180) % 365;
  const [winterS, begins, ends] =
    midnight === 'skipped' ? [eastS, `${day}/0`, `${farDay}/0`] : [eastS - 3_600, `${farDay}/0`, `${day}/1`];
  return `<winter>${offset(winterS)}<summer>${offset(winterS + 3_600)},${begins},${ends}`;
}
