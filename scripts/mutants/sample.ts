/** The same ones for the same seed: each gets a number from a linear congruential generator, the least are chosen. */
export function sampleOf<T>(all: readonly T[], count: number | null, seed: number): T[] {
  if (count === null) return [...all];
  let state = seed >>> 0;
  const numbered = all.map((one) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return { one, number: state };
  });
  const least = new Set(numbered.toSorted((a, b) => a.number - b.number).slice(0, count));
  return numbered.filter((each) => least.has(each)).map(({ one }) => one);
}
