import { markNames } from '../../../bench/path/marks.ts';
import { formatTable } from '../page.ts';
import { type Figures, pathOf, type ShownSide, type SideFigures, shownSides, sideTitles } from './figures.ts';

const heads = shownSides.map((side) => sideTitles[side]);
const bare = 'bare' satisfies ShownSide;

interface Row {
  readonly name: string;
  /** What the bench of the engine calls it. */
  readonly figure: string;
  readonly read: (side: SideFigures) => number;
}

function toCells({ engine: { sides } }: Figures, { name, figure, read }: Row): string[] {
  const cells = shownSides.map((side) => {
    const value = read(sides[side]).toFixed(1);
    return side === bare ? value : `${value} (${sides[side].by_bare[figure]?.toFixed(2)})`;
  });
  return [name, ...cells];
}

function sumOf(values: Readonly<Record<string, number>>): number {
  return Object.values(values).reduce((sum, value) => sum + value, 0);
}

export function stepTable(figures: Figures): string {
  const { sides } = figures.engine;
  const rows: readonly Row[] = [
    ...Object.keys(sides.capstan.step_ms).map((shape) => ({
      name: `ms per step, ${shape}`,
      figure: shape,
      read: ({ step_ms }: SideFigures) => step_ms[shape] ?? 0,
    })),
    {
      name: 'runs per second, 32 in flight',
      figure: 'runs per second',
      read: (side) => side.runs_per_second,
    },
    {
      name: 'processor ms per step',
      figure: 'processor ms/run',
      read: ({ processor_ms }) => sumOf(processor_ms),
    },
    { name: 'ms to the first call', figure: 'first dispatch', read: (side) => side.first_call_ms },
  ];
  const events = shownSides.map((side) => sides[side].history_events ?? '-');
  return formatTable(
    ['', ...heads],
    [...rows.map((row) => toCells(figures, row)), ['events in Temporal, three steps', ...events]],
  );
}

export function processorTable({ engine: { sides } }: Figures): string {
  const processes = [...new Set(shownSides.flatMap((side) => Object.keys(sides[side].processor_ms)))];
  return formatTable(
    ['processor ms per step', ...heads],
    processes.map((process) => [
      process,
      ...shownSides.map((side) => sides[side].processor_ms[process]?.toFixed(2) ?? '-'),
    ]),
  );
}

/** What is read in one statement may seem to come before what it follows. */
function showStep(ms: number): string {
  return ms < 0.05 ? 'at once' : `+${ms.toFixed(1)}`;
}

export function pathTable({ path }: Figures): string {
  const followed = shownSides.flatMap((side) => {
    const name = pathOf[side];
    return name === undefined ? [] : [{ title: sideTitles[side], marks: path.sides[name] }];
  });
  const rows = markNames.map((name) => [
    name,
    ...followed.map(({ marks }) => {
      const mark = marks.find((one) => one.name === name);
      return mark === undefined ? '-' : `${mark.at_ms.toFixed(1)} (${showStep(mark.stage_ms)})`;
    }),
  ]);
  return formatTable(['ms since the request', ...followed.map(({ title }) => title)], rows);
}

export function keptTable({ engine: { kept_step_ms, equal_items } }: Figures): string {
  return formatTable(
    ['', 'ms', 'calls', 'USD'],
    [
      ['a step whose result is kept, ten in sequence', kept_step_ms.toFixed(1), 0, 0],
      [
        `a list of ${equal_items.count.toLocaleString('en')} equal items, all of it`,
        equal_items.ms.toFixed(0),
        equal_items.calls,
        'of one call',
      ],
    ],
  );
}

export function sourceLine({ engine, path }: Figures): string {
  const rounds = engine.rounds === 1 ? 'one round' : `${engine.rounds} rounds`;
  return `Measured ${engine.at.slice(0, 10)} on ${engine.machine}: ${rounds} of \`npm run bench -- engine\`, medians; in brackets by Temporal alone, the median of the rounds' own ratios. Stages: ${path.runs} runs of \`npm run bench -- path\`, ${path.at.slice(0, 10)}.`;
}
