/**
 * Takes what the benches `engine`, `path` and `router` have printed with `--json` into the figures of the pages, and writes
 * pages and picture: `npm run bench -- figures engine.json path.json router.json`. Benches without a file keep theirs.
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
import { routerFiguresFile, writeRouterFigures } from '../router/figures.ts';
import type { RouterResult } from '../router/result.ts';
import type { BenchResult } from './result.ts';

type Result = BenchResult | PathResult | RouterResult;

function isOfRouter(result: Result): result is RouterResult {
  return 'by_compiled' in result;
}

/** Only the engine's bench has rounds. */
function isOfEngine(result: BenchResult | PathResult): result is BenchResult {
  return 'by_round' in result;
}

/** Writes a file below the root of the repository. */
function write(file: string, text: string): void {
  writeFileSync(fileURLToPath(new URL(`../../${file}`, import.meta.url)), text);
}

function take(figures: Figures, file: string): Figures {
  const result = JSON.parse(readFileSync(file, 'utf8')) as Result;
  if (isOfRouter(result)) {
    write(routerFiguresFile, writeRouterFigures(result));
    return figures;
  }
  if (isOfEngine(result)) return { ...figures, engine: toEngineFigures(result) };
  return { ...figures, path: toPathShown(result) };
}

const files = process.argv.slice(2);
if (files.length === 0)
  throw new Error('which files? npm run bench -- figures engine.json path.json router.json');
const figures = files.reduce(take, readFigures());
write(figuresFile, `${JSON.stringify(figures, null, 2)}\n`);
await import('../../scripts/generate-docs.ts');
