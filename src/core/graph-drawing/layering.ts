/**
 * Puts every node of an acyclic graph into a layer: the length of the longest path that leads to it. An edge that passes
 * over layers gets a bend in each of them, so that it is drawn around the nodes there, unless that takes too many bends.
 */
import { createGraph } from '../dag/graph.ts';

export interface Edge {
  readonly from: string;
  readonly to: string;
}

/** Nodes and bends, by number; the nodes come first, in the given order. */
export interface Layering {
  readonly nodes: number;
  /** Per layer what stands in it. */
  readonly layers: readonly (readonly number[])[];
  /** Per place the layer it is in. */
  readonly layerOf: readonly number[];
  /** Per place where its edges come from, and where they go to. */
  readonly before: readonly (readonly number[])[];
  readonly after: readonly (readonly number[])[];
  /** Per edge its places, from its first node over its bends to its last node. */
  readonly routes: readonly (readonly number[])[];
}

/** Edges of unknown nodes are left out. */
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
