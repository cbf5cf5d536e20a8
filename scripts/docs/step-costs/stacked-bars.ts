/** A panel of bars, one a side, each stacked from its parts. */
import { type ShownSide, shownSides, sideTitles } from './figures.ts';
import { boxAt, textAt, width } from './svg.ts';

export interface Part {
  readonly name: string;
  readonly colour: string;
}

export interface Panel {
  readonly title: string;
  readonly subtitle: string;
  /** In the order in which they are stacked, and explained. */
  readonly parts: readonly Part[];
  /** Of a side, by name of the part. */
  readonly read: (side: ShownSide) => ReadonlyMap<string, number>;
  /** The text behind the bar, where it is not the sum of its parts. */
  readonly readTotal?: (side: ShownSide) => number;
}

const margin = 20;
const left = 190;
const roomForTotal = 70;
const rowHeight = 30;
const barHeight = 20;
/** A number of four characters has to fit. */
const leastForNumber = 30;
const legendColumn = 280;
const legendRow = 20;

function sumOf(values: ReadonlyMap<string, number>): number {
  return [...values.values()].reduce((sum, value) => sum + value, 0);
}

function drawLegend(parts: readonly Part[], y: number): string[] {
  return parts.flatMap(({ name, colour }, index) => {
    const x = margin + (index % 3) * legendColumn;
    const base = y + Math.floor(index / 3) * legendRow;
    return [
      boxAt({ x, y: base - 10, width: 12, height: 12 }, colour),
      textAt({ x: x + 18, y: base }, name, { as: 'muted' }),
    ];
  });
}

function drawBar({ parts, read }: Panel, { side, y, scale }: { side: ShownSide; y: number; scale: number }) {
  const values = read(side);
  const shapes: string[] = [];
  let x = left;
  for (const { name, colour } of parts) {
    const value = values.get(name) ?? 0;
    const wide = value * scale;
    shapes.push(boxAt({ x, y, width: wide, height: barHeight }, colour));
    if (wide >= leastForNumber) {
      const place = { x: x + wide / 2, y: y + 14 };
      shapes.push(textAt(place, value.toFixed(1), { as: 'on', anchor: 'middle' }));
    }
    x += wide;
  }
  return { shapes, end: x };
}

function legendHeight({ parts }: Panel): number {
  return Math.ceil(parts.length / 3) * legendRow;
}

export function heightOf(panel: Panel): number {
  return 52 + legendHeight(panel) + shownSides.length * rowHeight + 14;
}

export function drawPanel(panel: Panel, top: number): string[] {
  const { title, subtitle, parts, read, readTotal } = panel;
  const longest = Math.max(...shownSides.map((side) => sumOf(read(side))));
  const scale = (width - left - margin - roomForTotal) / longest;
  const first = top + 52 + legendHeight(panel);
  const rows = shownSides.flatMap((side, index) => {
    const y = first + index * rowHeight;
    const { shapes, end } = drawBar(panel, { side, y, scale });
    const total = readTotal?.(side) ?? sumOf(read(side));
    return [
      textAt({ x: margin, y: y + 15 }, sideTitles[side], side === 'capstan' ? { as: 'strong' } : {}),
      ...shapes,
      textAt({ x: end + 8, y: y + 15 }, `${total.toFixed(1)} ms`, { as: 'strong' }),
    ];
  });
  return [
    textAt({ x: margin, y: top + 14 }, title, { as: 'title' }),
    textAt({ x: margin, y: top + 33 }, subtitle, { as: 'muted' }),
    ...drawLegend(parts, top + 56),
    ...rows,
  ];
}
