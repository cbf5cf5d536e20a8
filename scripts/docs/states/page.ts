/** The pages are written by hand; their pictures are drawn from the machines. */
import { fillPage, type Page } from '../page.ts';
import { drawAttempt, drawCall } from './call.ts';
import { drawContact } from './contact.ts';
import { drawInstance } from './instance.ts';
import { drawRun, drawStep, exploreRuns } from './run.ts';

export async function createStatesPages(): Promise<Page[]> {
  const runs = exploreRuns();
  const run = drawRun(runs);
  const all = fillPage('docs/contributing/states.md', [
    ['run', run],
    ['step', drawStep(runs)],
    ['call', await drawCall()],
    ['attempt', drawAttempt()],
    ['instance', drawInstance()],
    ['contact', drawContact()],
  ]);
  return [all, fillPage('packages/core/README.md', [['run', run]])];
}
