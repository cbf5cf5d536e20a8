/**
 * What every call and every submission passes, each part alone: `npm run bench -- hot-path [--quick]
 * [--only server,choice,checks,batches,costs,reconciling] [--beside PATH] [--json]`. Exit code 1 when a bar is
 * missed or a part dies.
 */
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { runBench, say } from '../shared/run-bench.ts';
import { createDatabases } from '../shared/start-database.ts';
import { measureBatches } from './batches.ts';
import { measureChecks } from './checks.ts';
import { measureChoice } from './choice.ts';
import { measureCosts } from './costs.ts';
import { type Bench, type Figure, isMet, toLine } from './figure.ts';
import { measureReconciling } from './reconciling.ts';
import { measureServer } from './server.ts';

type Part = (bench: Bench) => Figure[] | Promise<Figure[]>;

const parts: Readonly<Record<string, Part>> = {
  server: measureServer,
  choice: measureChoice,
  checks: measureChecks,
  batches: measureBatches,
  costs: measureCosts,
  reconciling: measureReconciling,
};

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    beside: { type: 'string' },
    only: { type: 'string', default: Object.keys(parts).join(',') },
  },
});

/** @throws Error for a name that there is not */
function chooseParts(only: string): [name: string, part: Part][] {
  return only.split(',').map((name) => {
    const part = parts[name];
    if (part === undefined) throw new Error(`--only ${name}: allowed are ${Object.keys(parts).join(', ')}`);
    return [name, part];
  });
}

const chosen = chooseParts(options.only);

await runBench(async (place) => {
  const { quick: isQuick, beside } = options;
  const bench: Bench = { place, isQuick, beside, addDatabase: createDatabases(place) };
  const figures: Figure[] = [];
  for (const [name, part] of chosen) {
    say(`measuring ${name}`);
    figures.push(...(await part(bench)));
  }
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim()}, Node ${process.version}`;
  const at = new Date().toISOString();
  if (options.json) console.log(JSON.stringify({ at, machine, figures }, null, 2));
  else console.log([`${at}  ${machine}`, ...figures.map(toLine)].join('\n'));
  return figures.every(isMet);
});
