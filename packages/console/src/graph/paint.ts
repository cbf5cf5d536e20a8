/** The zoomed-out graph: one canvas instead of thousands of elements. */
import type { Tone } from '../shared/state.ts';
import { type GraphLayout, nodeHeight, nodeWidth, type Place } from './layout.ts';
import { lookOfNode, type NodeFacts } from './node-model.ts';

export interface Picture {
  readonly layout: GraphLayout;
  readonly nodes: readonly NodeFacts[];
  readonly isDim: (facts: NodeFacts) => boolean;
  readonly selected: string | null;
  readonly critical: ReadonlySet<string>;
}

export interface Viewport extends Place {
  readonly zoom: number;
}

export type Palette = Readonly<Record<Tone | 'surface' | 'line' | 'text' | 'accent', string>>;

const roles = [
  'running',
  'done',
  'failed',
  'waiting',
  'person',
  'quiet',
  'surface',
  'text',
  'accent',
] as const;

export function readPalette(): Palette {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string): string => style.getPropertyValue(`--c-${name}`).trim();
  const entries = roles.map((role) => [role, of(role)]);
  return { ...Object.fromEntries(entries), line: of('line-strong') } as Palette;
}

const namesFrom = 0.24;
/** Pixels of the screen. */
const leastText = 11;
const mostLines = 30_000;

export interface PaintOptions {
  readonly viewport: Viewport;
  readonly palette: Palette;
  readonly ratio: number;
}

export function paint(canvas: HTMLCanvasElement, picture: Picture, options: PaintOptions): void {
  const context = canvas.getContext('2d');
  if (context === null) return;
  const { x, y, zoom } = options.viewport;
  const scale = zoom * options.ratio;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.setTransform(scale, 0, 0, scale, x * options.ratio, y * options.ratio);
  const seen = {
    left: -x / zoom - nodeWidth,
    top: -y / zoom - nodeHeight,
    right: (canvas.width / options.ratio - x) / zoom,
    bottom: (canvas.height / options.ratio - y) / zoom,
  };
  paintLines(context, picture, options);
  for (const facts of picture.nodes) {
    const place = picture.layout.places.get(facts.id);
    if (place === undefined) continue;
    if (place.x < seen.left || place.x > seen.right || place.y < seen.top || place.y > seen.bottom) continue;
    paintNode(context, { facts, place, picture }, options);
  }
  context.globalAlpha = 1;
}

function paintLines(
  context: CanvasRenderingContext2D,
  { layout }: Picture,
  { palette, viewport }: PaintOptions,
): void {
  if (layout.lines.length > mostLines) return;
  context.beginPath();
  for (const { points } of layout.lines) {
    for (const [index, { x, y }] of points.entries()) {
      if (index === 0) context.moveTo(x, y);
      else context.lineTo(x, y);
    }
  }
  context.globalAlpha = 0.7;
  context.strokeStyle = palette.line;
  context.lineWidth = Math.min(3, 1 / viewport.zoom);
  context.stroke();
}

interface PaintedNode {
  readonly facts: NodeFacts;
  readonly place: Place;
  readonly picture: Picture;
}

function paintNode(
  context: CanvasRenderingContext2D,
  { facts, place, picture }: PaintedNode,
  { palette, viewport }: PaintOptions,
): void {
  const tone = lookOfNode(facts)?.tone ?? 'quiet';
  const isPending = facts.state === null || facts.state === 'pending';
  context.globalAlpha = picture.isDim(facts) ? 0.15 : 1;
  context.fillStyle = isPending ? palette.surface : palette[tone];
  context.fillRect(place.x, place.y, nodeWidth, nodeHeight);
  const isChosen = facts.id === picture.selected;
  if (isPending || isChosen || picture.critical.has(facts.id)) {
    context.strokeStyle = isChosen ? palette.accent : isPending ? palette.line : palette.text;
    context.lineWidth = (isChosen ? 3 : 1.5) / viewport.zoom;
    context.strokeRect(place.x, place.y, nodeWidth, nodeHeight);
  }
  if (viewport.zoom < namesFrom) return;
  context.fillStyle = isPending ? palette.text : palette.surface;
  // Names keep a minimum size on the screen at any zoom; long ones are cut.
  const size = Math.max(22, leastText / viewport.zoom);
  const room = Math.floor((nodeWidth - 24) / (size * 0.6));
  const name = facts.id.length > room ? `${facts.id.slice(0, Math.max(1, room - 1))}…` : facts.id;
  context.font = `600 ${size}px sans-serif`;
  context.fillText(name, place.x + 12, place.y + nodeHeight / 2 + size / 3, nodeWidth - 24);
}
