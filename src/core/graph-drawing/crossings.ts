import type { Layering } from './layering.ts';

/**
 * Orders the places of each layer by the mean place of their neighbours (barycenters), forwards and backwards in turn, so that
 * few edges cross.
 */
export function orderLayers({ layers, before, after }: Layering, sweeps: number): number[][] {
  const ordered = layers.map((layer) => [...layer]);
  const ranks: number[] = before.map(() => 0);
  const rank = (layer: readonly number[]): void => {
    for (const [index, place] of layer.entries()) ranks[place] = index / Math.max(1, layer.length - 1);
  };
  ordered.forEach(rank);
  for (let sweep = 0; sweep < sweeps; sweep++) {
    const isForward = sweep % 2 === 0;
    for (const layer of isForward ? ordered : ordered.toReversed()) {
      sortByNeighbours(layer, isForward ? before : after, ranks);
      rank(layer);
    }
  }
  return ordered;
}

function sortByNeighbours(layer: number[], neighbours: Layering['before'], ranks: readonly number[]): void {
  const means = new Map(
    layer.map((place) => [place, meanOf(neighbours[place] ?? [], ranks) ?? ranks[place] ?? 0]),
  );
  layer.sort((a, b) => (means.get(a) ?? 0) - (means.get(b) ?? 0));
}

export function meanOf(places: readonly number[], values: readonly number[]): number | null {
  return places.length === 0
    ? null
    : places.reduce((sum, place) => sum + (values[place] ?? 0), 0) / places.length;
}
