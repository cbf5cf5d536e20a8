/** The positions of a graph's nodes, by the same rules that draw a definition as SVG. */

import { createLayering, orderLayers, placeRows } from '@capstan/core/graph/layout';
import type { DrawnEdge } from './drawn-step.ts';

export const nodeWidth = 216;
export const nodeHeight = 84;
const columnGap = 64;
const rowGap = 20;
const bendHeight = 16;
/** For larger graphs, avoiding crossings and nodes under edges takes too long. */
const carefulNodes = 500;
const mostBends = 4_000;

export interface Place {
  readonly x: number;
  readonly y: number;
}

export interface GraphLayout {
  readonly places: ReadonlyMap<string, Place>;
  /** The points of each edge's line, from the right side of one node to the left side of another. */
  readonly lines: readonly {
    readonly from: string;
    readonly to: string;
    readonly points: readonly Place[];
  }[];
  readonly width: number;
  readonly height: number;
}

export function layoutGraph(ids: readonly string[], edges: readonly DrawnEdge[]): GraphLayout {
  const isCareful = ids.length <= carefulNodes;
  const layering = createLayering(ids, edges, isCareful ? mostBends : 0);
  const layers = orderLayers(layering, isCareful ? 6 : 0);
  const heightOf = (place: number): number => (place < ids.length ? nodeHeight + rowGap : bendHeight);
  const rows = placeRows(layering, layers, { heightOf, passes: isCareful ? 5 : 1 });
  const leftOf = (place: number): number => (layering.layerOf[place] ?? 0) * (nodeWidth + columnGap);
  const middleOf = (place: number): number => Math.round(rows[place] ?? 0);

  const places = new Map(
    ids.map((id, place) => [id, { x: leftOf(place), y: middleOf(place) - nodeHeight / 2 }]),
  );
  const lines = layering.routes.map((route) => {
    const points = route.flatMap((place, index) => {
      const y = middleOf(place);
      const left = { x: leftOf(place), y };
      const right = { x: leftOf(place) + nodeWidth, y };
      if (index === 0) return [right];
      return index === route.length - 1 ? [left] : [left, right];
    });
    return { from: ids[route[0] ?? 0] ?? '', to: ids[route.at(-1) ?? 0] ?? '', points };
  });
  const width = Math.max(1, layers.length) * (nodeWidth + columnGap) - columnGap;
  const height = rows.reduce((most, row, place) => Math.max(most, row + heightOf(place) / 2), nodeHeight);
  return { places, lines, width, height };
}

/** The line as an SVG path, horizontal at both ends. */
export function toPath(points: readonly Place[]): string {
  const [first, ...rest] = points;
  if (first === undefined) return '';
  let last = first;
  let path = `M${first.x} ${first.y}`;
  for (const next of rest) {
    const middle = Math.round((last.x + next.x) / 2);
    path +=
      next.y === last.y
        ? `L${next.x} ${next.y}`
        : `C${middle} ${last.y} ${middle} ${next.y} ${next.x} ${next.y}`;
    last = next;
  }
  return path;
}

/** The node under a point, if there is one. */
export function nodeAt({ places }: GraphLayout, { x, y }: Place): string | null {
  for (const [id, place] of places) {
    if (x >= place.x && x <= place.x + nodeWidth && y >= place.y && y <= place.y + nodeHeight) return id;
  }
  return null;
}
