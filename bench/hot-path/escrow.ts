/**
 * The most that escrow of budgets could save: `npm run bench -- escrow [--quick]`. Paid calls are claimed and settled
 * durably through the writer of a process, once as they are, once without budget rows. Attempt, slot and ledger entries
 * stay: they must be durable before the request is sent, or the calls of a killed process are in no account. A holder of
 * headroom would also have to fetch and return it, so the real saving is smaller.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { pino } from 'pino';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { ensureDatabase } from '../../src/dev/postgres/server.ts';
import { type AttemptWriter, createAttemptWriter } from '../../src/parts/calls/attempt-writer.ts';
import { prepareDatabase } from '../../src/use-cases/setup.ts';
import { median } from '../engine/statistics.ts';
import { type Place, runBench } from '../shared/run-bench.ts';
import { startDatabase } from '../shared/start-database.ts';
import { type Make, type PreparedCall, prepareCalls } from './calls.ts';

const { values: options } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });
const rounds = options.quick ? 5 : 15;
const callers = [1, 8, 32] as const;
const callsOf = { 1: 200, 8: 800, 32: 1_600 } as const;

const withoutBudgets = `
create or replace function charge_budgets(p_attempt_ids text[], p_back bigint[], p_spent bigint[], p_claims claim_request[],
  p_now timestamptz) returns jsonb language plpgsql as $$ begin return null; end $$`;

interface Side {
  readonly db: Db;
  readonly writer: AttemptWriter;
  readonly make: Make;
  /** The process of the one connection. */
  readonly backend: number;
}

/** For one call, a claim and its settlement. */
interface Cost {
  readonly postgresUs: number;
  readonly elapsedUs: number;
}

async function openSide(databaseUrl: string, change: string | null): Promise<Side> {
  const db = connectDatabase(databaseUrl, 1);
  if (change !== null) await db.raw(change);
  const { rows } = await db.raw<{ rows: [{ pid: number }] }>('select pg_backend_pid() as pid');
  const writer = createAttemptWriter({ db, logger: pino({ level: 'silent' }) });
  return { db, writer, make: await prepareCalls(db), backend: rows[0].pid };
}

async function openSides(place: Place): Promise<{ readonly whole: Side; readonly without: Side }> {
  const { server, databaseUrl } = await startDatabase(place);
  const other = await ensureDatabase(server, 'without_budgets');
  await prepareDatabase(other, { apiKeyFile: `${place.dataDir}/other-api-key` });
  return { whole: await openSide(databaseUrl, null), without: await openSide(other, withoutBudgets) };
}

/** Processor time of a process so far, µs. */
function readProcessorUs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1_000;
}

async function play({ writer }: Side, { claim, end }: PreparedCall): Promise<void> {
  const { outcome } = await writer.claim(claim, true);
  if (outcome !== 'claimed') throw new Error(`a claim was ${outcome}`);
  if ((await writer.settle(end, true, false)) !== 'settled') throw new Error('a settlement was refused');
}

async function measure(side: Side, count: (typeof callers)[number]): Promise<Cost> {
  const calls = [...(await side.make('paid', callsOf[count]))];
  const total = calls.length;
  const caller = async (): Promise<void> => {
    for (let call = calls.pop(); call !== undefined; call = calls.pop()) await play(side, call);
  };
  const [startedAt, from] = [performance.now(), readProcessorUs(side.backend)];
  await Promise.all(Array.from({ length: count }, caller));
  return {
    postgresUs: (readProcessorUs(side.backend) - from) / total,
    elapsedUs: ((performance.now() - startedAt) * 1_000) / total,
  };
}

interface Pair {
  readonly whole: Cost;
  readonly without: Cost;
}

function toLine(count: number, pairs: readonly Pair[], of: keyof Cost): string {
  const middle = (values: readonly number[]): string => median(values).toFixed(0).padStart(10);
  const saved = median(pairs.map(({ whole, without }) => 1 - without[of] / whole[of]));
  const name = of === 'postgresUs' ? 'µs of Postgres' : 'µs elapsed';
  const figures = [pairs.map(({ whole }) => whole[of]), pairs.map(({ without }) => without[of])].map(middle);
  return `${`${count}`.padStart(7)}  ${name.padEnd(16)}${figures.join('')}${(saved * 100).toFixed(1).padStart(10)} %`;
}

await runBench(async (place) => {
  const sides = await openSides(place);
  const pairs = new Map<number, Pair[]>(callers.map((count) => [count, []]));
  for (let round = -1; round < rounds; round++) {
    for (const count of callers) {
      const isFirst = round % 2 === 0;
      const early = await measure(isFirst ? sides.whole : sides.without, count);
      const late = await measure(isFirst ? sides.without : sides.whole, count);
      const pair = isFirst ? { whole: early, without: late } : { whole: late, without: early };
      if (round >= 0) pairs.get(count)?.push(pair);
    }
  }
  console.log(`${new Date().toISOString()}  Node ${process.version}  ${rounds} rounds, for each paid call`);
  console.log(`callers  ${''.padEnd(16)}     whole   without     saved`);
  for (const [count, played] of pairs) {
    for (const of of ['postgresUs', 'elapsedUs'] as const) console.log(toLine(count, played, of));
  }
  for (const { db } of Object.values(sides)) await db.destroy();
  return true;
});
