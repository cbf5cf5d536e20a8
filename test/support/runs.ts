/**
 * How often a test draws its inputs: `RUNS=10` draws ten times as many as usual, `SEED=7` those of one seed. A failure
 * prints the seed of what was drawn.
 */

const times = Number(process.env.RUNS ?? 1);

/** Undefined: another one each time. */
export const seed = process.env.SEED === undefined ? undefined : Number(process.env.SEED);

export function runs(usual: number): number {
  return Math.max(1, Math.round(usual * times));
}

/** For the properties of fast-check that say nothing else. */
export async function drawAsAsked(): Promise<void> {
  if (process.env.RUNS === undefined && seed === undefined) return;
  const { configureGlobal } = await import('fast-check');
  configureGlobal({ numRuns: runs(100), ...(seed === undefined ? {} : { seed }) });
}
