import { markNames } from './marks.ts';
import { type PathSideName, pathSideNames } from './path-side.ts';
import type { PathResult } from './result.ts';

const titles: Readonly<Record<PathSideName, string>> = {
  unset: 'nothing set',
  queued: 'queued',
  bare: 'bare Temporal',
};

function row(name: string, cells: readonly string[]): string {
  return name.padEnd(26) + cells.map((cell) => cell.padStart(24)).join('');
}

function show({ at_ms, stage_ms }: { readonly at_ms: number; readonly stage_ms: number }): string {
  return `${at_ms.toFixed(2)} ${`(${stage_ms.toFixed(2)})`.padStart(9)}`;
}

export function toTable({ at, machine, runs, sides, dispatched }: PathResult): string {
  const marks = markNames.map((name) =>
    row(
      name,
      pathSideNames.map((side) => {
        const mark = sides[side].marks.find((one) => one.name === name);
        return mark === undefined ? '-' : show(mark);
      }),
    ),
  );
  const aside = pathSideNames.flatMap((side) =>
    sides[side].aside.map(({ name, at_ms }) => `${titles[side]}: ${name} after ${at_ms.toFixed(2)} ms`),
  );
  const choices = pathSideNames.flatMap((side) => dispatched[side] ?? []);
  return [
    `${at}  ${machine}  ${runs} runs of each`,
    '',
    'ms since the request (since the mark before); medians',
    row(
      '',
      pathSideNames.map((side) => titles[side]),
    ),
    ...marks,
    '',
    ...aside,
    ...choices,
  ].join('\n');
}
