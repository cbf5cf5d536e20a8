/** What growing holds have to show, beside the replay without a ceiling. */
import type { Replayed } from './play.ts';

interface Bar {
  readonly what: string;
  readonly isMet: (row: Replayed, free: Replayed | undefined) => boolean;
}

const always: readonly Bar[] = [
  { what: 'nothing is spent above the ceiling', isMet: ({ over }) => over === 0 },
];

const enough: readonly Bar[] = [
  {
    what: 'at most 1.2 times as long as without a ceiling',
    isMet: ({ seconds }, free) => seconds <= 1.2 * (free?.seconds ?? 0),
  },
  { what: 'at most 0.1 % are cut', isMet: ({ cut }) => cut <= 0.001 },
  { what: 'every request finishes', isMet: ({ finished, cut }) => finished + cut === 1 },
];

const short: readonly Bar[] = [
  { what: 'at least 95 % of the money is in finished answers', isMet: ({ useful }) => useful >= 0.95 },
  { what: 'at most 1 % are cut', isMet: ({ cut }) => cut <= 0.01 },
];

const killed: readonly Bar[] = [
  { what: 'nothing is held 35 s after the end', isMet: ({ held }) => held === 0 },
  { what: 'servers were killed', isMet: ({ kills }) => kills > 0 },
];

/** Of a limit with room for a thousand calls: what is left is less than a call. */
const many: readonly Bar[] = [
  ...short,
  { what: 'at least 99.5 % of the limit is used', isMet: ({ spent }) => spent >= 0.995 },
];

function barsOf({ ceiling, callers, killEveryS }: Replayed): readonly Bar[] {
  if (killEveryS !== null) return killed;
  if (callers !== null) return many;
  return (ceiling ?? 0) > 1 ? enough : short;
}

/** @returns a line for each bar that a replay misses */
export function findMissedBars(rows: readonly Replayed[]): string[] {
  return rows.flatMap((row) => {
    if (row.ceiling === null || !row.grows) return [];
    const free = rows.find(({ ceiling, servers }) => ceiling === null && servers === row.servers);
    const bars = [...always, ...barsOf(row)];
    const name = `${row.servers} servers, ceiling ${row.ceiling}, ${row.most} tokens`;
    return bars.filter(({ isMet }) => !isMet(row, free)).map(({ what }) => `${name}: ${what}`);
  });
}
