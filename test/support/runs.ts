/**
 * Scales the random inputs of tests: `RUNS=10` draws ten times as many as usual. Each run draws the same ones, so that a
 * change is judged by what it changed; `SEED=7` draws those of another seed, and `SEED=new` of one that no run had.
 */
import { configureGlobal } from 'fast-check';

const times = Number(process.env.RUNS ?? 1);
const asked = process.env.SEED ?? 20_261_122;

export const seed = asked === 'new' ? Date.now() % 2 ** 31 : Number(asked);

export function runs(usual: number): number {
  return Math.max(1, Math.round(usual * times));
}

/** Defaults for fast-check properties. A failure prints its seed. */
export function drawAsAsked(): void {
  configureGlobal({ numRuns: runs(100), seed });
}
