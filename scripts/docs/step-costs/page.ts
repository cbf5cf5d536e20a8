/** The page is written by hand; the text between its markers is written from the figures. */
import { fillPage, type Page } from '../page.ts';
import type { Figures } from './figures.ts';
import { keptTable, pathTable, processorTable, sourceLine, stepTable } from './tables.ts';

const file = 'docs/what-a-step-costs.md';

export function createStepCostsPage(figures: Figures): Page {
  const parts = [
    ['source', sourceLine(figures)],
    ['steps', stepTable(figures)],
    ['processes', processorTable(figures)],
    ['path', pathTable(figures)],
    ['kept', keptTable(figures)],
  ] as const;
  return fillPage(file, parts);
}
