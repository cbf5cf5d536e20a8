/** A panel of small bars: a row a side, a column a shape of run, each column by its own scale. */
import { type Figures, type ShownSide, shownSides, sideTitles } from './figures.ts';
import { boxAt, textAt, width } from './svg.ts';

const margin = 20;
const left = 190;
const rowHeight = 30;
const barHeight = 20;
const gap = 16;
const roomForNumber = 56;
const colour = '#7aa2f7';
const ownColour = '#f59e5b';

/** The steps of half a second cost half a second everywhere. */
const stepShapes = [
  '3 in sequence',
  '10 in sequence',
  '40 in sequence',
  '20 in parallel',
  '100 in parallel',
] as const;

const columns = [...stepShapes, 'runs per second'] as const;
type Column = (typeof columns)[number];

function readColumn({ engine }: Figures, side: ShownSide, column: Column): number {
  const { step_ms, runs_per_second } = engine.sides[side];
  return column === 'runs per second' ? runs_per_second : (step_ms[column] ?? 0);
}

function drawColumn(
  figures: Figures,
  column: Column,
  { x, y, wide }: { x: number; y: number; wide: number },
) {
  const most = Math.max(...shownSides.map((side) => readColumn(figures, side, column)));
  const barWidth = wide - roomForNumber;
  return [
    textAt({ x, y: y - 10 }, column, { as: 'muted' }),
    ...shownSides.flatMap((side, index) => {
      const value = readColumn(figures, side, column);
      const top = y + index * rowHeight;
      const length = Math.max(1, (value / most) * barWidth);
      const isOwn = side === 'capstan' || side === 'queued';
      return [
        boxAt({ x, y: top, width: barWidth, height: barHeight }, null),
        boxAt({ x, y: top, width: length, height: barHeight }, isOwn ? ownColour : colour),
        textAt({ x: x + wide - gap, y: top + 15 }, value.toFixed(value < 100 ? 1 : 0), { anchor: 'end' }),
      ];
    }),
  ];
}

export const smallBarsHeight = 74 + shownSides.length * rowHeight + 14;

export function drawSmallBars(figures: Figures, top: number): string[] {
  const wide = (width - left - margin + gap) / columns.length;
  const y = top + 74;
  return [
    textAt({ x: margin, y: top + 14 }, 'Time of a step, ms', { as: 'title' }),
    textAt(
      { x: margin, y: top + 33 },
      'One run at a time, from the request to its recorded end, divided by its steps. Last: three-step runs, 32 in flight.',
      { as: 'muted' },
    ),
    ...shownSides.map((side, index) =>
      textAt(
        { x: margin, y: y + index * rowHeight + 15 },
        sideTitles[side],
        side === 'capstan' ? { as: 'strong' } : {},
      ),
    ),
    ...columns.flatMap((column, index) => drawColumn(figures, column, { x: left + index * wide, y, wide })),
  ];
}
