/**
 * Draws an acyclic graph as SVG: layers from left to right, every edge from a lower layer to a higher one. The drawing
 * is a pure function of its input, contains no script, and follows the viewer's light or dark theme. O((V + E) log V).
 */
import { createLayering, type Edge, type Layering, orderLayers, placeRows } from './layout.ts';

const entities: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ["'", '&apos;'],
]);

/** For XML content and attributes; characters that XML does not allow become U+FFFD. */
function escapeXml(text: string): string {
  return text
    .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd')
    .replace(/[&<>"']/g, (sign) => entities.get(sign) ?? sign);
}

/** Shortens to `most` characters; the last one is an ellipsis when text was cut. */
function shorten(text: string, most: number): string {
  if (text.length <= most) return text;
  const characters = [...text];
  return characters.length <= most ? text : `${characters.slice(0, most - 1).join('')}…`;
}

export interface GraphNode {
  readonly id: string;
  /** The work of the node: a capability, `reel@1.0`, `wait 30s`, `review`, `event paid`, `set`. */
  readonly label: string;
  readonly kind: 'capability' | 'pipeline' | 'wait' | 'review' | 'event' | 'set';
}

const margin = 16;
const nodeHeight = 46;
const rowGap = 14;
const columnGap = 64;
const bendHeight = 14;
const longestText = 30;
const characterWidth = 7.5;
/** Above this, avoiding crossings and nodes under edges is not worth the time. */
const carefulNodes = 500;
const mostBends = 4_000;

interface Drawing {
  readonly layering: Layering;
  readonly rows: readonly number[];
  readonly nodeWidth: number;
}

/** @param edges by node ids; edges of unknown nodes are ignored */
export function drawGraph(nodes: readonly GraphNode[], edges: readonly Edge[]): string {
  const isCareful = nodes.length <= carefulNodes;
  const layering = createLayering(
    nodes.map(({ id }) => id),
    edges,
    isCareful ? mostBends : 0,
  );
  const layers = orderLayers(layering, isCareful ? 6 : 0);
  const heightOf = (place: number): number => (place < nodes.length ? nodeHeight + rowGap : bendHeight);
  const rows = placeRows(layering, layers, { heightOf, passes: isCareful ? 5 : 1 });
  const drawing: Drawing = { layering, rows, nodeWidth: chooseWidth(nodes) };
  const width = leftOf(Math.max(0, layers.length - 1), drawing) + drawing.nodeWidth + margin;
  const bottom = rows.reduce((most, row, place) => Math.max(most, row + heightOf(place) / 2), 0);
  const height = Math.round(bottom) + 2 * margin;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="13">`,
    head,
    '<g class="edges" fill="none" stroke="#8b949e" stroke-width="1.5">',
    ...layering.routes.map((route) => drawEdge(route, drawing)),
    '</g>',
    ...nodes.map((node, place) => drawNode(node, place, drawing)),
    '</svg>',
    '',
  ].join('\n');
}

/** Attributes give the light theme, for viewers without style sheets. */
const head = `<style>
@media (prefers-color-scheme: dark) {
.ground { fill: #0d1117 } .box { fill: #161b22; stroke: #6e7681 } .id { fill: #e6edf3 } .label { fill: #9198a1 }
.edges { stroke: #6e7681 } .tip { fill: #6e7681 }
.pipeline .box { stroke: #58a6ff } .wait .box { stroke: #d29922 } .review .box { stroke: #bc8cff }
.event .box { stroke: #39c5cf }
}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path class="tip" d="M0 0 8 4 0 8z" fill="#8b949e"/></marker></defs>
<rect class="ground" width="100%" height="100%" fill="#ffffff"/>`;

function chooseWidth(nodes: readonly GraphNode[]): number {
  const longest = nodes.reduce((most, { id, label }) => Math.max(most, id.length, label.length), 8);
  return Math.round(Math.min(longest, longestText) * characterWidth) + 24;
}

function leftOf(layer: number, { nodeWidth }: Drawing): number {
  return margin + layer * (nodeWidth + columnGap);
}

function rowOf(place: number, { rows }: Drawing): number {
  return Math.round((rows[place] ?? 0) + margin);
}

/** From the right side of the first node, level through the column of each bend, to the left side of the last. */
function drawEdge(route: readonly number[], drawing: Drawing): string {
  const places = route.map((place) => ({
    left: leftOf(drawing.layering.layerOf[place] ?? 0, drawing),
    row: rowOf(place, drawing),
  }));
  const [first, ...rest] = places;
  if (first === undefined) return '';
  let path = `M${first.left + drawing.nodeWidth} ${first.row}`;
  let row = first.row;
  let right = first.left + drawing.nodeWidth;
  for (const [index, next] of rest.entries()) {
    const middle = Math.round((right + next.left) / 2);
    path += `C${middle} ${row} ${middle} ${next.row} ${next.left} ${next.row}`;
    row = next.row;
    right = next.left + drawing.nodeWidth;
    if (index < rest.length - 1) path += `H${right}`;
  }
  return `<path d="${path}" marker-end="url(#tip)"/>`;
}

const boxes: Readonly<Record<GraphNode['kind'], string>> = {
  capability: 'rx="6" stroke="#6e7781"',
  pipeline: 'rx="6" stroke="#0969da" stroke-width="2.5"',
  wait: 'rx="23" stroke="#9a6700"',
  review: 'rx="6" stroke="#8250df" stroke-dasharray="5 3"',
  event: 'rx="23" stroke="#1b7c83" stroke-dasharray="5 3"',
  set: 'rx="0" stroke="#6e7781" stroke-dasharray="2 2"',
};

function drawNode({ id, label, kind }: GraphNode, place: number, drawing: Drawing): string {
  const left = leftOf(drawing.layering.layerOf[place] ?? 0, drawing);
  const top = rowOf(place, drawing) - nodeHeight / 2;
  const text = (words: string): string => escapeXml(shorten(words, longestText));
  return [
    `<g class="node ${kind}" transform="translate(${left} ${top})">`,
    `<title>${escapeXml(`${id}: ${label}`)}</title>`,
    `<rect class="box" width="${drawing.nodeWidth}" height="${nodeHeight}" fill="#f6f8fa" ${boxes[kind]}/>`,
    `<text class="id" x="12" y="19" font-weight="600" fill="#1f2328">${text(id)}</text>`,
    `<text class="label" x="12" y="36" font-size="12" fill="#59636e">${text(label)}</text>`,
    '</g>',
  ].join('');
}
