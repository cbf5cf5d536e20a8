/**
 * What the statement around every call costs Postgres: `npm run bench -- statements [--quick] [--beside FOLDER]`,
 * where FOLDER is another checkout, measured in turn with this one. The figure is processor time of the connection's
 * own backend, so neighbours on the machine and the disk do not count; the median of the rounds.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { AttemptEnd, Claim, ClaimResult, EndResult } from '../../src/db/attempt/attempt.ts';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { median } from '../engine/statistics.ts';
import { runBench } from '../shared/run-bench.ts';
import { startDatabase } from '../shared/start-database.ts';
import { type Kind, kinds, type Make, prepareCalls } from './calls.ts';

const { values: options } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, beside: { type: 'string' } },
});
const effort = options.quick ? { rounds: 3, calls: 300 } : { rounds: 9, calls: 1_000 };
const batch = 16;

type Write = (
  db: Db,
  batch: { readonly ends: readonly AttemptEnd[]; readonly claims: readonly Claim[] },
  isDurable: boolean,
) => Promise<{ readonly ends: readonly EndResult[]; readonly claims: readonly ClaimResult[] }>;

interface Side {
  readonly name: string;
  readonly db: Db;
  readonly write: Write;
  readonly make: Make;
}

/** A statement of a call: what is measured, in µs per call. */
interface Figure {
  readonly claim: number;
  readonly settle: number;
  /** Both by one statement. */
  readonly together: number;
  /** Both, many calls by one statement. */
  readonly batched: number;
}

async function openSide(name: string, folder: string, url: string): Promise<Side> {
  const at = (path: string): string => resolve(folder, 'src/db', path);
  const { migrate } = (await import(at('migrate.ts'))) as typeof import('../../src/db/migrate.ts');
  const attempt = (await import(at('attempt/attempt.ts'))) as Record<string, Write>;
  await migrate(url);
  const db = connectDatabase(url, 1);
  const write = attempt.settleAndClaim ?? attempt.takeTurn;
  if (write === undefined) throw new Error(`${folder} has no statement that settles and claims`);
  return { name, db, write, make: await prepareCalls(db) };
}

/** Processor time of a process so far, µs. */
function readProcessorUs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1_000;
}

async function timed(backend: number, work: () => Promise<void>): Promise<number> {
  const from = readProcessorUs(backend);
  await work();
  return readProcessorUs(backend) - from;
}

function check(results: readonly { readonly outcome: string }[], ends: readonly EndResult[]): void {
  const refused = results.find(({ outcome }) => outcome !== 'claimed')?.outcome;
  if (refused !== undefined) throw new Error(`a claim was ${refused}`);
  if (ends.some((end) => end !== 'settled')) throw new Error('a settlement was refused');
}

async function measure(side: Side, kind: Kind): Promise<Figure> {
  const { db, write, make } = side;
  const { rows } = await db.raw<{ rows: [{ pid: number }] }>('select pg_backend_pid() as pid');
  const backend = rows[0].pid;
  const isDurable = kind !== 'free';
  const put = async (ends: readonly AttemptEnd[], claims: readonly Claim[]): Promise<void> => {
    const results = await write(db, { ends, claims }, isDurable);
    check(results.claims, results.ends);
  };
  let claim = 0;
  let settle = 0;
  for (const call of await make(kind, effort.calls)) {
    claim += await timed(backend, () => put([], [call.claim]));
    settle += await timed(backend, () => put([call.end], []));
  }
  const inTurn = async (size: number, times: number): Promise<number> => {
    const calls = await make(kind, size * times);
    let open: readonly AttemptEnd[] = [];
    const spent = await timed(backend, async () => {
      for (let turn = 0; turn < times; turn++) {
        const taken = calls.slice(turn * size, (turn + 1) * size);
        await put(
          open,
          taken.map((call) => call.claim),
        );
        open = taken.map(({ end }) => end);
      }
      await put(open, []);
    });
    return spent / calls.length;
  };
  return {
    claim: claim / effort.calls,
    settle: settle / effort.calls,
    together: await inTurn(1, effort.calls),
    batched: await inTurn(batch, Math.ceil(effort.calls / batch)),
  };
}

await runBench(async (place) => {
  const { databaseUrl } = await startDatabase(place);
  const sides = [await openSide('here', '.', databaseUrl)];
  if (options.beside !== undefined) {
    await sides[0]?.db.raw('create database beside');
    sides.push(await openSide('beside', options.beside, databaseUrl.replace(/[^/]+$/, 'beside')));
  }
  const figures = new Map<string, Figure[]>();
  for (let round = -1; round < effort.rounds; round++) {
    for (const side of round % 2 === 0 ? sides : [...sides].reverse()) {
      for (const kind of kinds) {
        const figure = await measure(side, kind);
        const name = `${kind.padEnd(6)} ${side.name}`;
        if (round >= 0) figures.set(name, [...(figures.get(name) ?? []), figure]);
      }
    }
  }
  console.log(
    `${new Date().toISOString()}  Node ${process.version}  ${effort.rounds} rounds; µs of Postgres per call`,
  );
  console.log(
    `${''.padEnd(16)}${['claim', 'settle', 'together', `${batch} at once`].map((head) => head.padStart(10)).join('')}`,
  );
  for (const [name, rounds] of [...figures].sort(([a], [b]) => a.localeCompare(b))) {
    const cells = (['claim', 'settle', 'together', 'batched'] as const).map((key) =>
      median(rounds.map((one) => one[key]))
        .toFixed(0)
        .padStart(10),
    );
    console.log(`${name.padEnd(16)}${cells.join('')}`);
  }
  for (const { db } of sides) await db.destroy();
  return true;
});
