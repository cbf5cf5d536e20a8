/** Which parts the bars are stacked from: processes by what they are for, stages by where a run is meanwhile. */
import type { MarkName } from '../../../bench/path/marks.ts';
import { type Figures, pathOf, type ShownSide } from './figures.ts';
import type { Panel, Part } from './stacked-bars.ts';

/** Each side's processes have names of their own. */
const roles: readonly (Part & { readonly processes: readonly string[] })[] = [
  { name: "engine: Temporal's or Restate's server", colour: '#7aa2f7', processes: ['Temporal', 'Restate'] },
  { name: 'Postgres', colour: '#5cc8c0', processes: ['Postgres'] },
  { name: "Capstan's server", colour: '#f59e5b', processes: ['server'] },
  {
    name: 'worker, or application of the rival',
    colour: '#f2d15f',
    processes: ['worker', 'bare worker', 'Restate service', 'DBOS application'],
  },
  { name: 'capability', colour: '#b3bac3', processes: ['capability'] },
];

function readRoles({ engine }: Figures, side: ShownSide): ReadonlyMap<string, number> {
  const { processor_ms } = engine.sides[side];
  const sumOf = (processes: readonly string[]): number =>
    processes.reduce((sum, process) => sum + (processor_ms[process] ?? 0), 0);
  return new Map(roles.map(({ name, processes }) => [name, sumOf(processes)]));
}

export function processorPanel(figures: Figures): Panel {
  return {
    title: 'Processor time of a step, by process, ms',
    subtitle: 'Runs of three steps, 32 in flight: all that the side has used, divided by its steps.',
    parts: roles,
    read: (side) => readRoles(figures, side),
  };
}

type FirstMark = Extract<
  MarkName,
  | 'run stored'
  | 'workflow started'
  | 'run with the worker'
  | 'activity with the worker'
  | 'call claimed'
  | 'first call'
>;

/** What happens until each mark. */
const stages: Readonly<Record<FirstMark, Part>> = {
  'run stored': { name: 'server checks and stores the run', colour: '#f59e5b' },
  'workflow started': { name: 'start goes to Temporal', colour: '#a9c7ff' },
  'run with the worker': { name: 'Temporal gives the run to a worker', colour: '#7aa2f7' },
  'activity with the worker': { name: 'Temporal gives the step to a worker', colour: '#b79cf2' },
  'call claimed': { name: 'worker prepares, Postgres claims', colour: '#5cc8c0' },
  'first call': { name: 'request goes out', colour: '#f2d15f' },
};
const whole: Part = { name: 'all of it, not looked into', colour: '#b3bac3' };

function readStages({ engine, path }: Figures, side: ShownSide): ReadonlyMap<string, number> {
  const followed = pathOf[side];
  if (followed === undefined) return new Map([[whole.name, engine.sides[side].first_call_ms]]);
  const marks = new Map(path.sides[followed].map(({ name, stage_ms }) => [name, stage_ms]));
  return new Map(
    Object.entries(stages).map(([name, { name: shown }]) => [shown, marks.get(name as FirstMark) ?? 0]),
  );
}

function readFirstCall({ engine, path }: Figures, side: ShownSide): number {
  const followed = pathOf[side];
  if (followed === undefined) return engine.sides[side].first_call_ms;
  return path.sides[followed].find(({ name }) => name === 'first call')?.at_ms ?? Number.NaN;
}

export function firstCallPanel(figures: Figures): Panel {
  return {
    title: 'From the request to the first call, ms',
    subtitle:
      'One run at a time. Medians: those of the stages need not add up to that of the whole, which stands behind.',
    parts: [...Object.values(stages), whole],
    read: (side) => readStages(figures, side),
    readTotal: (side) => readFirstCall(figures, side),
  };
}
