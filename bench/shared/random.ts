/** Numbers that are the same on every machine for one seed. */
export interface Random {
  /** In [0, 1). */
  uniform(): number;
  /** Mean 1. */
  exponential(): number;
  /** Mean 1, median 0.61, one in a hundred above 6.2: most calls are short, some very long. */
  lognormal(): number;
  /** A whole number below `limit`. */
  below(limit: number): number;
}

const sigma = 1;

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const uniform = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  return {
    uniform,
    exponential: () => -Math.log(1 - uniform()),
    lognormal: () => Math.exp(sigma * normal() - sigma ** 2 / 2),
    below: (limit) => Math.floor(uniform() * limit),
  };
}
