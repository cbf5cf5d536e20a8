/** What became of the mutants, by folder, and beside what became of them before. */
import type { Judged } from './accepted.ts';
import type { Trial } from './core-mutants.ts';

/** Percent, of each folder. */
const leastScore = 85;

export interface Score {
  readonly folder: string;
  readonly mutants: number;
  readonly caught: number;
  /** Percent. */
  readonly score: number;
  readonly isEnough: boolean;
}

/** A folder below that of the sources, such as `core/money`. */
function folderOf({ file }: Trial): string {
  return file
    .split('/')
    .filter((part) => part !== 'packages' && part !== 'src')
    .slice(0, 2)
    .join('/');
}

export function scoresOf(trials: readonly Trial[]): Score[] {
  return [...new Set(trials.map(folderOf))].map((folder) => {
    const own = trials.filter((trial) => folderOf(trial) === folder);
    const caught = own.filter(({ end }) => end !== 'survived').length;
    const score = (100 * caught) / own.length;
    return { folder, mutants: own.length, caught, score, isEnough: score >= leastScore };
  });
}

export function describeScores(scores: readonly Score[]): string {
  const rows = scores.map(
    ({ folder, mutants, caught, score }) =>
      `| \`${folder}\` | ${mutants} | ${caught} | ${mutants - caught} | ${score.toFixed(1)} % |`,
  );
  return ['', '| folder | mutants | caught | survived | score |', '|---|---|---|---|---|', ...rows].join(
    '\n',
  );
}

export function describeJudged({ missed, idle, groups }: Judged): string {
  return [
    ...groups
      .filter(({ survivors }) => survivors > 0)
      .map((one) => `accepted ${one.survivors}: ${one.reason}`),
    ...idle.map((key) => `accepted in vain: ${key}`),
    ...missed.map(
      ({ file, line, label, isMet }) => `${isMet ? 'survived' : 'not met '} ${file}:${line} ${label}`,
    ),
  ].join('\n');
}

/** Those that were caught before and are missed now; mutants of a text that is no more are not compared. */
export function compareTrials(before: readonly Trial[], now: readonly Trial[]): Trial[] {
  const caught = new Set(before.filter(({ end }) => end !== 'survived').map(({ key }) => key));
  return now.filter(({ key, end }) => end === 'survived' && caught.has(key));
}
