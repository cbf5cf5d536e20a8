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

export interface GraphBox {
  readonly width: number;
  readonly height: number;
}

export interface GraphView {
  readonly x: number;
  readonly y: number;
  readonly zoom: number;
  /** The whole graph is visible. */
  readonly isWhole: boolean;
}

/** Space around a graph, and at the right also for the buttons, px. */
const graphMargin = 24;
const buttonsWidth = 40;

/** At a smaller zoom a node shows its name alone, larger. */
export const shortZoom = 0.75;
/** Below it, names are larger still. */
export const tinyZoom = 0.55;
/** The smallest zoom at which those names are readable. */
const leastZoom = 0.4;

function shareOf({ width, height }: GraphLayout, box: GraphBox): number {
  const room = { width: box.width - 2 * graphMargin - buttonsWidth, height: box.height - 2 * graphMargin };
  return Math.min(1, room.width / width, room.height / height);
}

/** In the middle of its box. */
function placeWhole(layout: GraphLayout, box: GraphBox): GraphView {
  const zoom = Math.max(0.01, shareOf(layout, box));
  const x = Math.max(graphMargin, (box.width - buttonsWidth - layout.width * zoom) / 2);
  return { x, y: Math.max(graphMargin, (box.height - layout.height * zoom) / 2), zoom, isWhole: true };
}

export interface FitOptions {
  /** Only the shape of so large a graph helps. */
  readonly isOverview?: boolean;
  /** A step that is always in view. */
  readonly selected?: string | null;
}

/** The whole graph if its names stay readable; else its start, or what is around the selected step. */
export function fitGraph(
  layout: GraphLayout,
  box: GraphBox,
  { isOverview = false, selected = null }: FitOptions = {},
): GraphView {
  if (isOverview || shareOf(layout, box) >= leastZoom) return placeWhole(layout, box);
  const room = (box.height - 2 * graphMargin) / layout.height;
  const zoom = Math.max(leastZoom, Math.min(tinyZoom, room));
  const place = layout.places.get(selected ?? '') ?? { x: 0, y: 0 };
  const end = box.width - buttonsWidth - graphMargin - layout.width * zoom;
  const x = Math.min(graphMargin, Math.max(end, box.width / 2 - (place.x + nodeWidth / 2) * zoom));
  const middle = (box.height - layout.height * zoom) / 2;
  const y =
    middle >= graphMargin
      ? middle
      : Math.min(graphMargin, box.height / 2 - (place.y + nodeHeight / 2) * zoom);
  return { x, y, zoom, isWhole: false };
}

/** The whole graph at any zoom. */
export function fitWhole(layout: GraphLayout, box: GraphBox): GraphView {
  return placeWhole(layout, box);
}

/** The height that the graph needs in a box of this width, px. */
export function heightFor(layout: GraphLayout, width: number, isOverview = false): number {
  const { zoom } = fitGraph(layout, { width, height: Number.POSITIVE_INFINITY }, { isOverview });
  return Math.ceil(layout.height * zoom + 2 * graphMargin);
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
