/**
 * Replays failures of sixty kinds over models with prices, once with skills and once without: `npm run bench --
 * learning [--quick] [--json] [--seed 1]`. Everything is real, on Postgres: routed calls, ladders, skills, money; only
 * the capabilities and the texts of models are made up, and Temporal is left out (each ladder is driven by a loop, one
 * after the other). Exit code 1 when a bar is missed.
 */
import { parseArgs } from 'node:util';
import { connectDatabase } from '../../src/db/connect.ts';
import { runBench, say } from '../shared/run-bench.ts';
import { startDatabase } from '../shared/start-database.ts';
import { drawFailures } from './failures.ts';
import { compare } from './result.ts';
import { playSide } from './side.ts';
import { toTable } from './table.ts';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    seed: { type: 'string', default: '1' },
  },
});
const seed = Number(values.seed);
const failures = drawFailures(seed, values.quick ? 600 : 2_000);

/** For the other side, on the same server, which need not survive the machine: nothing here depends on time. */
async function addDatabase(databaseUrl: string): Promise<string> {
  const db = connectDatabase(databaseUrl, 2);
  await db.raw('create database plain');
  await db.raw('alter system set fsync = off');
  await db.raw('select pg_reload_conf()');
  await db.destroy();
  const url = new URL(databaseUrl);
  url.pathname = '/plain';
  return url.href;
}

await runBench(async (place) => {
  const { databaseUrl } = await startDatabase(place);
  const plainUrl = await addDatabase(databaseUrl);
  const progress = (name: string) => (done: number) => {
    if (done % 100 === 0) say(`${name}: ${done} of ${failures.length}`);
  };
  const [learning, plain] = await Promise.all([
    playSide({ databaseUrl, failures, seed, learns: true, progress: progress('with skills') }),
    playSide({ databaseUrl: plainUrl, failures, seed, learns: false, progress: progress('without') }),
  ]);
  const result = compare(seed, learning, plain);
  console.log(values.json ? JSON.stringify(result, null, 2) : toTable(result));
  return result.passed;
});
