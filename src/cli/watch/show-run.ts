/** Prints a run as it stands. */
import type { Run } from '../../contracts/run.ts';
import type { Session } from '../session.ts';
import { renderOutcome } from './outcome.ts';
import { renderRunHead, renderSteps } from './run-table.ts';

/** @param withSteps false where every step has already been told, line by line */
export const showRun = ({ print, shell }: Session, run: Run, withSteps: boolean): void => {
  const layout = { style: print.style, width: print.width, height: Infinity, now: shell.now() };
  print.line(renderRunHead(run, layout));
  if (withSteps) print.lines(['', ...renderSteps(run.steps, layout), '']);
  print.lines(renderOutcome(run, print.style));
};
