/** Prints a run as it stands. */
import type { Run } from '../../contracts/run.ts';
import type { Session } from '../client/session.ts';
import { renderDispatch } from '../render/dispatch-lines.ts';
import { renderOutcome } from './outcome.ts';
import { renderRunHead, renderSteps } from './run-table.ts';

/** Where the run comes from, if not from a plain start, and what was decided for it. */
function renderOrigin({ parent, rerun_of, schedule_id, labels, dispatch = [] }: Run): string[] {
  return [
    ...(parent === undefined
      ? []
      : [`part of ${parent.run_id} ${parent.step_id}${parent.item === 0 ? '' : `[${parent.item}]`}`]),
    ...(rerun_of === undefined ? [] : [`rerun of ${rerun_of}`]),
    ...(schedule_id === undefined ? [] : [`started by ${schedule_id}`]),
    ...(Object.keys(labels).length === 0
      ? []
      : [
          `labels ${Object.entries(labels)
            .map(([name, value]) => `${name}=${value}`)
            .join(', ')}`,
        ]),
    ...renderDispatch(dispatch),
  ];
}

/** @param withSteps false where every step has already been told, line by line */
export function showRun({ print, shell }: Session, run: Run, withSteps: boolean): void {
  const layout = { style: print.style, width: print.width, height: Infinity, now: shell.now() };
  print.line(renderRunHead(run, layout));
  if (withSteps)
    print.lines([
      ...renderOrigin(run).map((line) => print.style.dim(line)),
      '',
      ...renderSteps(run.steps, layout),
      '',
    ]);
  print.lines(renderOutcome(run, print.style));
}
