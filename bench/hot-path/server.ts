/**
 * Where the processor time of a direct call goes: the server's by stage and by function, the database's by statement.
 * The time is that of the threads of both in /proc under a steady load, without a profiler. A second load is sampled,
 * and the time of the server's main thread is shared out by its samples; that of its other threads is a line of its
 * own. So the lines of the server add up to its time. Times of statements are those that Postgres was in them.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import pg from 'pg';
import { median } from '../engine/statistics.ts';
import { measure } from '../router/load.ts';
import { registerUpstreams } from '../router/register.ts';
import { pin, startServers, startUpstream } from '../router/stack.ts';
import { describeExec, describeStreams, type System } from '../router/systems.ts';
import { type Checkout, findCheckout } from '../shared/other-checkout.ts';
import { say } from '../shared/run-bench.ts';
import type { Database } from '../shared/start-database.ts';
import type { Bench, Figure } from './figure.ts';
import { sample, sampleKept } from './profile.ts';
import { shareOut, sumByName, toPlace } from './stages.ts';

const callers = 32;
const most = { functions: 40, keepers: 10, statements: 15 };

interface Side {
  readonly name: string;
  readonly pid: number;
  readonly systems: readonly System[];
}

interface Machine {
  readonly database: Database;
  readonly sides: readonly [Side, ...Side[]];
  readonly postgresPid: number;
  readonly inspectorPort: number;
}

function readSchedUs(path: string): number {
  return Number(readFileSync(path, 'utf8').split(' ')[0]) / 1_000;
}

/** Processor time so far, µs: of the main thread, and of the others. */
function readThreads(pid: number): { readonly main: number; readonly others: number } {
  const times = { main: 0, others: 0 };
  for (const thread of readdirSync(`/proc/${pid}/task`))
    times[Number(thread) === pid ? 'main' : 'others'] += readSchedUs(`/proc/${pid}/task/${thread}/schedstat`);
  return times;
}

/** The children of Postgres, one for each connection, keep running through a load; one that only cleans up may end. */
function readPostgres(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  const paths = children.map((child) => `/proc/${child}/schedstat`).filter((path) => existsSync(path));
  return paths.reduce((sum, path) => sum + readSchedUs(path), 0);
}

/** Processor time of a call, µs. */
interface Spent {
  readonly main: number;
  readonly others: number;
  readonly postgres: number;
}

async function spend({ postgresPid }: Machine, { pid }: Side, load: () => Promise<{ calls: number }>) {
  const before = { ...readThreads(pid), postgres: readPostgres(postgresPid) };
  const { calls } = await load();
  const after = { ...readThreads(pid), postgres: readPostgres(postgresPid) };
  const of = (key: keyof Spent): number => (after[key] - before[key]) / calls;
  return { main: of('main'), others: of('others'), postgres: of('postgres') };
}

const collecting = { shared_preload_libraries: 'pg_stat_statements' };

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Statements are counted only while a load is explained. */
async function track(client: pg.Client, what: 'all' | 'none'): Promise<void> {
  await client.query(`alter system set pg_stat_statements.track = '${what}'`);
  await client.query('select pg_reload_conf()');
}

/** What ran on a database during the work, nested statements too. @returns lines of µs by call */
function watchStatements(url: string, work: () => Promise<{ calls: number }>): Promise<[string, number][]> {
  return withClient(url, async (client) => {
    await client.query('create extension if not exists pg_stat_statements');
    await track(client, 'all');
    await client.query('select pg_stat_statements_reset()');
    const { calls } = await work();
    await track(client, 'none');
    const { rows } = await client.query<{ query: string; toplevel: boolean; calls: string; us: number }>(
      `select query, toplevel, calls, total_exec_time * 1000 as us from pg_stat_statements
       where dbid = (select oid from pg_database where datname = current_database())
       order by total_exec_time desc limit ${most.statements}`,
    );
    return rows.map(({ query, toplevel, calls: times, us }) => {
      const text = query.replaceAll(/\s+/g, ' ').slice(0, 90);
      return [`${toplevel ? '' : '  '}${(Number(times) / calls).toFixed(2)} × ${text}`, us / calls];
    });
  });
}

async function start({ place, addDatabase, beside: path }: Bench): Promise<Machine> {
  const beside: Checkout | null = path === undefined ? null : findCheckout(path);
  const database = await addDatabase('server', collecting);
  await withClient(database.databaseUrl, (client) => track(client, 'none'));
  const upstream = await startUpstream(place);
  const inspectorPort = await place.nextPort();
  const servers = await startServers(place, {
    database,
    beside,
    flags: [`--inspect-port=127.0.0.1:${inspectorPort}`],
  });
  await registerUpstreams({ ...servers, upstream });
  const pids = new Map(place.supervisor.processes().map(({ name, pid }) => [name, pid]));
  const toSide = (name: string, server: typeof servers.capstan): Side => {
    const pid = pids.get(server.part) ?? 0;
    pin(pid, 0);
    return { name, pid, systems: [...describeExec(server, ''), ...describeStreams(server)] };
  };
  const others = servers.beside === null ? [] : [toSide('beside', servers.beside)];
  return {
    database,
    sides: [toSide('here', servers.capstan), ...others],
    postgresPid: pids.get('Postgres') ?? 0,
    inspectorPort,
  };
}

type Rounds = ReadonlyMap<string, readonly Spent[]>;

async function playRounds(machine: Machine, { rounds, ms }: { rounds: number; ms: number }): Promise<Rounds> {
  const played = new Map<string, Spent[]>();
  for (const { systems } of machine.sides)
    for (const system of systems) await measure(system, callers, 4_000);
  for (let round = 0; round < rounds; round++) {
    say(`round ${round + 1} of ${rounds}`);
    for (const side of round % 2 === 0 ? machine.sides : [...machine.sides].reverse())
      for (const system of side.systems) {
        const spent = await spend(machine, side, () => measure(system, callers, ms));
        const name = `${side.name} ${system.name}`;
        played.set(name, [...(played.get(name) ?? []), spent]);
      }
  }
  return played;
}

function toFigures(name: string, rounds: readonly Spent[]): Figure[] {
  const of = (read: (spent: Spent) => number): number => median(rounds.map(read));
  return [
    { name: `${name}: server`, value: of(({ main, others }) => main + others), unit: 'µs', bar: null },
    { name: `${name}: Postgres`, value: of(({ postgres }) => postgres), unit: 'µs', bar: null },
  ];
}

function compare(name: string, rounds: Rounds): Figure[] {
  const [ours, theirs] = [rounds.get(`here ${name}`) ?? [], rounds.get(`beside ${name}`) ?? []];
  if (theirs.length === 0) return [];
  const ratio = (what: string, read: (spent: Spent) => number): Figure => {
    const value = median(ours.map((one, at) => read(one) / read(theirs[at] as Spent)));
    return { name: `${name}: ${what} by the other checkout`, value, unit: '×', bar: null };
  };
  return [
    ...toFigures(`beside: ${name}`, theirs),
    ratio('server', ({ main, others }) => main + others),
    ratio('Postgres', ({ postgres }) => postgres),
  ];
}

/** A load that is sampled. @param spent what a call takes without a profiler */
async function explain(machine: Machine, system: System, spent: Spent, ms: number): Promise<Figure[]> {
  const { database, inspectorPort } = machine;
  let statements: [string, number][] = [];
  const sampled = await sample({ pid: machine.sides[0].pid, inspectorPort }, async () => {
    statements = await watchStatements(database.databaseUrl, () => measure(system, callers, ms));
  });
  const { stages, functions } = shareOut(sampled);
  const line = (name: string, value: number): Figure => ({ name: `  ${name}`, value, unit: 'µs', bar: null });
  return [
    { name: `${system.name}, server by stage`, value: spent.main + spent.others, unit: 'µs', bar: null },
    ...stages.map(([name, share]) => line(name, share * spent.main)),
    line('other threads: collection, compilation', spent.others),
    { name: `${system.name}, main thread by function`, value: spent.main, unit: 'µs', bar: null },
    ...functions.slice(0, most.functions).map(([name, share]) => line(name, share * spent.main)),
    { name: `${system.name}, Postgres by statement`, value: spent.postgres, unit: 'µs', bar: null },
    ...statements.map(([name, us]) => line(name, us)),
  ];
}

/**
 * What a call leaves to a full collection. Apart from calls in flight, an old object still refers to that: a table of a
 * Map that has been replaced, or a hidden class of a single object.
 */
async function explainKept(machine: Machine, system: System, ms: number): Promise<Figure[]> {
  const { inspectorPort, sides } = machine;
  let calls = 0;
  const kept = await sampleKept({ pid: sides[0].pid, inspectorPort }, async () => {
    ({ calls } = await measure(system, callers, ms));
  });
  const places = sumByName(kept.map(({ frame, bytes }) => [toPlace(frame), bytes / calls]));
  const line = (name: string, value: number): Figure => ({ name, value, unit: 'B', bar: null });
  const all = places.reduce((sum, [, bytes]) => sum + bytes, 0);
  return [
    line(`${system.name}, kept by collections of the young`, all),
    ...places.slice(0, most.keepers).map(([place, bytes]) => line(`  ${place}`, bytes)),
  ];
}

export async function measureServer(bench: Bench): Promise<Figure[]> {
  const machine = await start(bench);
  const effort = bench.isQuick ? { rounds: 15, ms: 700 } : { rounds: 25, ms: 1_500 };
  const rounds = await playRounds(machine, effort);
  const [{ systems }] = machine.sides;
  const figures = systems.flatMap(({ name }) => [
    ...toFigures(name, rounds.get(`here ${name}`) ?? []),
    ...compare(name, rounds),
  ]);
  for (const system of systems) {
    const played = rounds.get(`here ${system.name}`) ?? [];
    const of = (key: keyof Spent): number => median(played.map((spent) => spent[key]));
    const spent = { main: of('main'), others: of('others'), postgres: of('postgres') };
    figures.push(...(await explain(machine, system, spent, 2 * effort.ms)));
    figures.push(...(await explainKept(machine, system, 4 * effort.ms)));
  }
  return figures;
}
