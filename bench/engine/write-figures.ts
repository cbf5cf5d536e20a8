/**
 * Takes what the benches `engine` and `path` have printed with `--json` into the figures of the page "What a step costs",
 * and writes page and picture: `npm run bench -- figures engine.json path.json`. One file alone leaves the figures of
 * the other bench as they are.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  type Figures,
  figuresFile,
  readFigures,
  toEngineFigures,
  toPathShown,
} from '../../scripts/docs/step-costs/figures.ts';
import type { PathResult } from '../path/result.ts';
import type { BenchResult } from './result.ts';

/** Only the engine's bench has rounds. */
function isOfEngine(result: BenchResult | PathResult): result is BenchResult {
  return 'by_round' in result;
}

function take(figures: Figures, file: string): Figures {
  const result = JSON.parse(readFileSync(file, 'utf8')) as BenchResult | PathResult;
  if (isOfEngine(result)) return { ...figures, engine: toEngineFigures(result) };
  return { ...figures, path: toPathShown(result) };
}

const files = process.argv.slice(2);
if (files.length === 0) throw new Error('which files? npm run bench -- figures engine.json path.json');
const figures = files.reduce(take, readFigures());
const target = fileURLToPath(new URL(`../../${figuresFile}`, import.meta.url));
writeFileSync(target, `${JSON.stringify(figures, null, 2)}\n`);
await import('../../scripts/generate-docs.ts');
