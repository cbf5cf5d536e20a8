/** The page is written by hand; its pictures are drawn from the machines. */
import { fillPage, type Page } from '../page.ts';
import { drawAttempt, drawCall } from './call.ts';
import { drawInstance } from './instance.ts';
import { drawRun, drawStep, exploreRuns } from './run.ts';

export async function createStatesPage(): Promise<Page> {
  const runs = exploreRuns();
  return fillPage('docs/contributing/states.md', [
    ['run', drawRun(runs)],
    ['step', drawStep(runs)],
    ['call', await drawCall()],
    ['attempt', drawAttempt()],
    ['instance', drawInstance()],
  ]);
}
