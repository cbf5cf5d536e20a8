/** Attacks in rounds, with `/livez` and the size of the process beside them. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Answers, type Attack, attacks, type Target } from './attacks.ts';
import { measureKept, type ProcessSize, watchPeak } from './process-size.ts';
import { type LivezFigures, watchLivez } from './watch-livez.ts';

export interface AttackFigures extends LivezFigures {
  readonly name: string;
  readonly answers: Answers;
  /** The most that the process had while it was played. */
  readonly peakMib: number;
}

export interface RoundFigures {
  readonly figures: readonly AttackFigures[];
  readonly before: ProcessSize;
  readonly after: ProcessSize;
}

/** `/livez` answers within this, whatever is sent. */
export const livezMs = 300;
/** What a process may be larger by: pages with one object left in them stay with the process. */
const growthMib = 64;
const growthDescriptors = 20;

export function isAsLarge(before: ProcessSize, after: ProcessSize): boolean {
  return (
    after.residentMib <= before.residentMib + growthMib &&
    after.descriptors <= before.descriptors + growthDescriptors
  );
}

const settleMs = 5_000;
/** The flood at the end of a round has used up what the key may send at once. */
const refillMs = 5_000;

async function playAll(
  target: Target,
  { livez, pid }: { readonly livez: ReturnType<typeof watchLivez>; readonly pid: number },
  some: readonly Attack[],
): Promise<AttackFigures[]> {
  const figures: AttackFigures[] = [];
  for (const { name, play } of some) {
    await livez.read();
    const readPeakMib = watchPeak(pid);
    const answers = await play(target);
    figures.push({ name, answers, peakMib: readPeakMib(), ...(await livez.read()) });
  }
  return figures;
}

/** Played at most when the process seems larger: what leaks grows with each of them, chance does not. */
const furtherRounds = 2;

/** The first round is not counted: it loads and compiles what every request needs, and makes the heap as large as it gets. */
export async function playRounds(
  target: Target,
  pid: number,
  { rounds, some = attacks }: { readonly rounds: number; readonly some?: readonly Attack[] },
): Promise<RoundFigures> {
  const livez = watchLivez(target.url, pid);
  try {
    await playAll(target, { livez, pid }, some);
    await sleep(refillMs);
    let refilledAt = performance.now();
    const before = await measureKept(pid, () => false, settleMs);
    const measureAfter = () => measureKept(pid, (size) => isAsLarge(before, size), 6 * settleMs);
    const figures: AttackFigures[] = [];
    const playOne = async () => {
      await sleep(refilledAt - performance.now());
      figures.push(...(await playAll(target, { livez, pid }, some)));
      refilledAt = performance.now() + refillMs;
    };
    for (let round = 0; round < rounds; round++) await playOne();
    let after = await measureAfter();
    for (let round = 0; round < furtherRounds && !isAsLarge(before, after); round++) {
      await playOne();
      after = await measureAfter();
    }
    return { figures, before, after };
  } finally {
    await livez.stop();
  }
}
