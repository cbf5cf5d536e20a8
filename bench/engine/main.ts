/**
 * Compares Capstan with bare Temporal, the floor of a run on Temporal, Restate and DBOS: `npm run bench -- engine
 * [--quick] [--json] [--only capstan,dbos] [--rounds N] [--beside PATH] [--profile]`. Bare Temporal always takes part;
 * `--beside` adds another checkout of Capstan. Exit code 1 when a bar is missed or a part fails. `--profile` measures
 * nothing and reports the work of the processes of Capstan and of the floor under load.
 */
import { parseArgs } from 'node:util';
import { type Checkout, findCheckout } from '../shared/other-checkout.ts';
import { type Place, runBench, say } from '../shared/run-bench.ts';
import { connectSides } from './connect-sides.ts';
import { type Bench, measureRound, type Round, warmUp } from './measure.ts';
import { profile } from './profile.ts';
import { type BenchResult, summarize } from './result.ts';
import { createEffort, type Effort, loadShape, makeText } from './shapes.ts';
import { counterparts, type SideName, sideNames } from './side.ts';
import { type Stack, startStack } from './stack.ts';
import { toTable } from './table.ts';

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
  readonly beside: Checkout | null;
}

async function measure(place: Place, { effort, names, beside }: Options): Promise<BenchResult> {
  say(`starting Postgres, Temporal, server and workers for ${names.join(', ')}`);
  const stack: Stack = await startStack(place, names, { beside });
  const { sides, close } = await connectSides(stack, names);
  try {
    return await measureAll({ sides, effort, endpoint: stack.endpoints.echo, processes: stack.processes() });
  } finally {
    await close();
  }
}

/** What `--only` takes: another checkout's sides come with those of this one. */
const ownNames = sideNames.filter((name) => !counterparts.some(([, other]) => other === name));

/** @throws Error for a name that there is not */
function chooseSides(only: string, beside: Checkout | null): readonly SideName[] {
  const given = new Set(['bare', ...only.split(',')]);
  const wrong = [...given].filter((name) => !ownNames.some((own) => own === name));
  if (wrong.length > 0) throw new Error(`--only ${wrong.join(',')}: allowed are ${ownNames.join(', ')}`);
  const others = counterparts.filter(([own]) => beside !== null && given.has(own)).map(([, other]) => other);
  return sideNames.filter((name) => given.has(name) || others.some((other) => other === name));
}

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    only: { type: 'string', default: ownNames.join(',') },
    rounds: { type: 'string' },
    beside: { type: 'string' },
    profile: { type: 'boolean', default: false },
  },
});
const beside = options.beside === undefined ? null : findCheckout(options.beside);
const names = chooseSides(options.only, beside);

await runBench(async (place) => {
  const rounds = options.rounds === undefined ? undefined : Number(options.rounds);
  if (options.profile) return profile(place, createEffort(options.quick, rounds));
  const result = await measure(place, { effort: createEffort(options.quick, rounds), names, beside });
  console.log(options.json ? JSON.stringify(result, null, 2) : toTable(result, beside?.root ?? null));
  return result.passed;
});
