/**
 * Compares Capstan with bare Temporal: `npm run bench:engine [-- --quick] [-- --json]`. Exit code 1 when a bar is
 * missed or a part dies.
 */
import { parseArgs } from 'node:util';
import { Client, Connection } from '@temporalio/client';
import { type Place, runBench, say } from '../shared/run-bench.ts';
import { createBareSide } from './bare-side.ts';
import { createCapstanSide } from './capstan-side.ts';
import { measureRound, type Round, type Sides, warmUp } from './measure.ts';
import { type BenchResult, summarize } from './result.ts';
import { watchRunEnds } from './run-ends.ts';
import { type Effort, fullEffort, loadShape, quickEffort } from './shapes.ts';
import { type Stack, startStack } from './stack.ts';
import { toTable } from './table.ts';

const measureAll = async (stack: Stack, sides: Sides, effort: Effort): Promise<BenchResult> => {
  say('warming up');
  await warmUp(sides, effort);
  const processes = stack.processes();
  const rounds: Round[] = [];
  for (let number = 0; number < effort.rounds; number++) {
    say(`round ${number + 1} of ${effort.rounds}`);
    rounds.push(await measureRound(sides, effort, { number, processes }));
  }
  const { capstan, bare } = sides;
  await Promise.all([capstan.run(loadShape), bare.run(loadShape)]);
  return summarize(rounds, { capstan: await capstan.countHistory(), bare: await bare.countHistory() });
};

const bench = async (place: Place, effort: Effort): Promise<BenchResult> => {
  say('starting Postgres, Temporal, server and workers');
  const stack = await startStack(place);
  const connection = await Connection.connect({ address: stack.temporalAddress });
  const ends = await watchRunEnds(stack.databaseUrl);
  try {
    const client = new Client({ connection });
    const capstan = await createCapstanSide(stack, client, ends);
    return await measureAll(stack, { capstan, bare: createBareSide(client, stack.bareTaskQueue) }, effort);
  } finally {
    await ends.close();
    await connection.close();
  }
};

const { values: options } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, json: { type: 'boolean', default: false } },
});

await runBench(async (place) => {
  const result = await bench(place, options.quick ? quickEffort : fullEffort);
  console.log(options.json ? JSON.stringify(result, null, 2) : toTable(result));
  return result.passed;
});
