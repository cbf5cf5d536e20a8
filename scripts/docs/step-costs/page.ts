/** The page is written by hand; what stands between its markers is written from the figures. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Page } from '../page.ts';
import type { Figures } from './figures.ts';
import { keptTable, pathTable, processorTable, sourceLine, stepTable } from './tables.ts';

const file = 'docs/what-a-step-costs.md';

/** @throws Error where the page has no such marker */
function replaceBetween(text: string, name: string, content: string): string {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  if (from < 0 || to < from) throw new Error(`${file} has no ${begin} … ${end}`);
  return `${text.slice(0, from + begin.length)}\n\n${content}\n\n${text.slice(to)}`;
}

export function createStepCostsPage(figures: Figures): Page {
  const parts = [
    ['source', sourceLine(figures)],
    ['steps', stepTable(figures)],
    ['processes', processorTable(figures)],
    ['path', pathTable(figures)],
    ['kept', keptTable(figures)],
  ] as const;
  const written = readFileSync(fileURLToPath(new URL(`../../../${file}`, import.meta.url)), 'utf8');
  return {
    file,
    text: parts.reduce((text, [name, content]) => replaceBetween(text, name, content), written),
  };
}
