/**
 * Scales the random inputs of tests: `RUNS=10` draws ten times as many as usual, `SEED=7` uses one seed. A failure
 * prints its seed.
 */

const times = Number(process.env.RUNS ?? 1);

/** Undefined: a different one each time. */
export const seed = process.env.SEED === undefined ? undefined : Number(process.env.SEED);

export function runs(usual: number): number {
  return Math.max(1, Math.round(usual * times));
}

/** Defaults for fast-check properties. */
export async function drawAsAsked(): Promise<void> {
  if (process.env.RUNS === undefined && seed === undefined) return;
  const { configureGlobal } = await import('fast-check');
  configureGlobal({ numRuns: runs(100), ...(seed === undefined ? {} : { seed }) });
}
