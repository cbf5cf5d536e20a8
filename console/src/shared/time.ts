/** Times and durations as a person reads them. */

const units: readonly (readonly [string, number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
];

/** `340 ms`, `1.2 s`, `2 min 10 s`, `3 h 5 min`, `2 d 4 h`: the two greatest units. */
export function formatDuration(ms: number): string {
  const size = Math.max(0, ms);
  if (size < 1_000) return `${Math.round(size)} ms`;
  if (size < 10_000) return `${(Math.floor(size / 100) / 10).toFixed(1)} s`;
  const first = units.findIndex(([, unit]) => size >= unit);
  const [name = 's', unit = 1_000] = units[first] ?? [];
  const [nextName, nextUnit = 1] = units[first + 1] ?? [];
  const whole = Math.floor(size / unit);
  const rest = Math.floor((size - whole * unit) / nextUnit);
  return nextName === undefined || rest === 0 ? `${whole} ${name}` : `${whole} ${name} ${rest} ${nextName}`;
}

/** `in 4 min`, `12 s ago`, `now`. */
export function formatAgo(at: string, now: number): string {
  const ms = now - Date.parse(at);
  if (Math.abs(ms) < 1_000) return 'now';
  const first = units.find(([, unit]) => Math.abs(ms) >= unit);
  const text = first === undefined ? '' : `${Math.floor(Math.abs(ms) / first[1])} ${first[0]}`;
  return ms < 0 ? `in ${text}` : `${text} ago`;
}

/** `14:03:27`, of another day with its date. */
export function formatClock(at: string, now: number = Date.now()): string {
  const moment = new Date(at);
  const time = moment.toLocaleTimeString('en-GB');
  const isToday = new Date(now).toDateString() === moment.toDateString();
  return isToday ? time : `${moment.toLocaleDateString('en-CA')} ${time}`;
}

/** With milliseconds, for what is read beside one another. */
export function formatExact(at: string): string {
  const moment = new Date(at);
  return `${moment.toLocaleDateString('en-CA')} ${moment.toLocaleTimeString('en-GB')}.${String(moment.getMilliseconds()).padStart(3, '0')}`;
}

/** In words of a time zone: `2026-11-22 09:00`. */
export function formatInZone(at: string, timeZone: string): string {
  const text = new Date(at).toLocaleString('en-CA', {
    timeZone,
    hour12: false,
    dateStyle: 'short',
    timeStyle: 'short',
  });
  return text.replace(',', '');
}
