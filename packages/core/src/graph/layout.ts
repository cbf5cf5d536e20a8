/**
 * Positions the nodes of an acyclic graph. Each node's layer is the length of the longest path that leads to it. An
 * edge across layers gets a bend in each of them, so that it avoids the nodes there, unless that takes too many bends.
 * Within a layer, nodes keep the given order and a minimum distance, and lie as close to their neighbours as possible.
 * For one layer that is least squares with a fixed order, which pooling colliding neighbours solves in linear time.
 */
import { createGraph } from './dag.ts';

export interface Edge {
  readonly from: string;
  readonly to: string;
}

/** Nodes and bends, by number; the nodes come first, in the given order. */
export interface Layering {
  readonly nodes: number;
  /** Per layer, its nodes and bends. */
  readonly layers: readonly (readonly number[])[];
  /** Per node or bend, its layer. */
  readonly layerOf: readonly number[];
  /** Per node or bend, the sources and the targets of its edges. */
  readonly before: readonly (readonly number[])[];
  readonly after: readonly (readonly number[])[];
  /** Per edge its nodes and bends, from its first node to its last. */
  readonly routes: readonly (readonly number[])[];
}

/** Ignores edges of unknown nodes. */
export function createLayering(ids: readonly string[], edges: readonly Edge[], mostBends: number): Layering {
  const predecessors = new Map<string, string[]>(ids.map((id) => [id, []]));
  for (const { from, to } of edges) predecessors.get(to)?.push(from);
  const graph = createGraph(ids.map((id) => ({ id, depends_on: predecessors.get(id) ?? [] })));
  const layerOf: number[] = ids.map(() => 0);
  for (const node of graph.order) {
    for (const next of graph.successors[node] ?? []) {
      layerOf[next] = Math.max(layerOf[next] ?? 0, (layerOf[node] ?? 0) + 1);
    }
  }
  const pairs = graph.successors.flatMap((successors, node) =>
    successors.map((next) => [node, next] as const),
  );
  const spans = pairs.map(([node, next]) => Math.max(0, (layerOf[next] ?? 0) - (layerOf[node] ?? 0) - 1));
  const isBent = spans.reduce((sum, span) => sum + span, 0) <= mostBends;
  const routes = pairs.map(([node, next], index) => {
    const bends = Array.from({ length: isBent ? (spans[index] ?? 0) : 0 }, (_, step) => {
      layerOf.push((layerOf[node] ?? 0) + 1 + step);
      return layerOf.length - 1;
    });
    return [node, ...bends, next];
  });
  return {
    nodes: ids.length,
    layerOf,
    routes,
    layers: groupByLayer(layerOf),
    ...connect(layerOf.length, routes),
  };
}

function groupByLayer(layerOf: readonly number[]): number[][] {
  const layers: number[][] = [];
  for (const [place, layer] of layerOf.entries()) {
    while (layers.length <= layer) layers.push([]);
    layers[layer]?.push(place);
  }
  return layers;
}

function connect(places: number, routes: Layering['routes']): Pick<Layering, 'before' | 'after'> {
  const before: number[][] = Array.from({ length: places }, () => []);
  const after: number[][] = Array.from({ length: places }, () => []);
  for (const route of routes) {
    for (const [index, place] of route.entries()) {
      const next = route[index + 1];
      if (next === undefined) continue;
      after[place]?.push(next);
      before[next]?.push(place);
    }
  }
  return { before, after };
}

/**
 * Orders each layer by the mean position of the neighbours (barycenters), forwards and backwards in turn, so that few
 * edges cross.
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

function meanOf(places: readonly number[], values: readonly number[]): number | null {
  return places.length === 0
    ? null
    : places.reduce((sum, place) => sum + (values[place] ?? 0), 0) / places.length;
}

/** @returns the centre of each node or bend, from 0 on */
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
  /** The sum and the number of the shifts in the pool. */
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
