/**
 * Heights in each layer: as near as can be to the neighbours, in the given order, never closer than allowed. For one
 * layer that is least squares with a fixed order, which pooling neighbours that collide solves in linear time.
 */
import { meanOf } from './crossings.ts';
import type { Layering } from './layering.ts';

/** @returns per place its centre, from 0 on */
export function placeRows(
  { before, after }: Layering,
  layers: readonly (readonly number[])[],
  { heightOf, passes }: { readonly heightOf: (place: number) => number; readonly passes: number },
): number[] {
  const centres: number[] = before.map(() => 0);
  const settle = (layer: readonly number[], neighbours: Layering['before'] | null): void => {
    const wanted = layer.map((place) => meanOf(neighbours?.[place] ?? [], centres) ?? centres[place] ?? 0);
    const settled = spreadOut(wanted, layer.map(heightOf));
    for (const [index, place] of layer.entries()) centres[place] = settled[index] ?? 0;
  };
  for (const layer of layers) settle(layer, null);
  for (let pass = 0; pass < passes; pass++) {
    const isForward = pass % 2 === 0;
    for (const layer of isForward ? layers : layers.toReversed()) settle(layer, isForward ? before : after);
  }
  const top = centres.reduce((least, centre, place) => Math.min(least, centre - heightOf(place) / 2), 0);
  return centres.map((centre) => centre - top);
}

interface Pool {
  /** The sum and the number of the shifts in it. */
  readonly sum: number;
  readonly size: number;
}

function spreadOut(wanted: readonly number[], heights: readonly number[]): number[] {
  const offsets: number[] = [];
  let offset = 0;
  for (const [index, height] of heights.entries()) {
    offset += index === 0 ? 0 : (heights[index - 1] ?? 0) / 2 + height / 2;
    offsets.push(offset);
  }
  const pools: Pool[] = [];
  for (const [index, centre] of wanted.entries()) {
    let pool: Pool = { sum: centre - (offsets[index] ?? 0), size: 1 };
    for (let last = pools.at(-1); last && last.sum / last.size > pool.sum / pool.size; last = pools.at(-1)) {
      pools.pop();
      pool = { sum: pool.sum + last.sum, size: pool.size + last.size };
    }
    pools.push(pool);
  }
  const shifts = pools.flatMap(({ sum, size }) => Array<number>(size).fill(sum / size));
  return offsets.map((each, index) => each + (shifts[index] ?? 0));
}
