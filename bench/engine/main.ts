/**
 * Compares Capstan with bare Temporal, Restate and DBOS: `npm run bench:engine [-- --quick] [-- --json]
 * [-- --only capstan,dbos]`. Bare Temporal always takes part. Exit code 1 when a bar is missed or a part dies.
 */
import { parseArgs } from 'node:util';
import { type Place, runBench, say } from '../shared/run-bench.ts';
import { type ConnectedSides, connectSides } from './connect-sides.ts';
import { measureEventDelays } from './event-delays.ts';
import { type Bench, measureRound, type Round, warmUp } from './measure.ts';
import { type BenchResult, summarize } from './result.ts';
import { type Effort, fullEffort, loadShape, makeText, quickEffort } from './shapes.ts';
import { type SideName, sideNames } from './side.ts';
import { type Stack, startStack } from './stack.ts';
import { toTable } from './table.ts';

function createBench(stack: Stack, { api, sides }: ConnectedSides, effort: Effort): Bench {
  return {
    sides,
    effort,
    endpoint: stack.endpoint,
    processes: stack.processes(),
    measureEventDelays: async (count) =>
      sides.some(({ name }) => name === 'capstan') ? measureEventDelays(api, count) : [],
  };
}

async function countHistories(sides: Bench['sides']): Promise<BenchResult['history_events']> {
  await Promise.all(sides.map((side) => side.run(loadShape, makeText())));
  const counts = sides.map(async (side) => [side.name, await side.countHistory()] as const);
  return Object.fromEntries(await Promise.all(counts));
}

async function measureAll(bench: Bench): Promise<BenchResult> {
  say('warming up');
  await warmUp(bench);
  const rounds: Round[] = [];
  for (let number = 0; number < bench.effort.rounds; number++) {
    say(`round ${number + 1} of ${bench.effort.rounds}`);
    rounds.push(await measureRound(bench, number));
  }
  return summarize(rounds, await countHistories(bench.sides));
}

interface Options {
  readonly effort: Effort;
  readonly names: readonly SideName[];
}

async function measure(place: Place, { effort, names }: Options): Promise<BenchResult> {
  say(`starting Postgres, Temporal, server and workers for ${names.join(', ')}`);
  const stack = await startStack(place, names);
  const connected = await connectSides(stack, names);
  try {
    return await measureAll(createBench(stack, connected, effort));
  } finally {
    await connected.close();
  }
}

/** @throws Error for a name that there is not */
function chooseSides(only: string): readonly SideName[] {
  const wanted = new Set(['bare', ...only.split(',')]);
  const chosen = sideNames.filter((name) => wanted.delete(name));
  if (wanted.size === 0) return chosen;
  throw new Error(`--only ${[...wanted].join(',')}: allowed are ${sideNames.join(', ')}`);
}

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    only: { type: 'string', default: sideNames.join(',') },
  },
});
const names = chooseSides(options.only);

await runBench(async (place) => {
  const result = await measure(place, { effort: options.quick ? quickEffort : fullEffort, names });
  console.log(options.json ? JSON.stringify(result, null, 2) : toTable(result));
  return result.passed;
});
