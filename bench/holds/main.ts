/**
 * Holds that grow beside reservations of the worst case: `npm run bench -- holds [--quick] [--trace FILE] [--speed N]
 * [--only grows,worst,many]`.
 * 200 chat requests of a public trace begin at once under a ceiling, through one and four servers, on real Postgres, with
 * a provider that writes 50 tokens a second, and N times as many (8) where the worst case is held: that takes minutes of
 * waiting, which are shown in seconds of the slow provider. At the end 100 callers send 1,200 requests, with little room,
 * and while a server is killed every 20 s. Exit code 1 when a bar is missed.
 */

import { parseArgs } from 'node:util';
import { addLength, type Lengths } from '@capstan/core/money/holds';
import pg from 'pg';
import { describeServer } from '../../src/dev/service-processes.ts';
import { request } from '../router/register.ts';
import { startCapstan } from '../router/stack.ts';
import type { CapstanServer } from '../router/systems.ts';
import { type Place, runBench, say } from '../shared/run-bench.ts';
import { createDatabases } from '../shared/start-database.ts';
import { findMissedBars } from './bars.ts';
import { countingStatements, createMeter } from './meter.ts';
import { type Replayed, replay, type Scenario } from './play.ts';
import { model, type Provider, startProvider } from './provider.ts';
import { type ChatRequest, createTrace } from './trace.ts';

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    trace: { type: 'string' },
    speed: { type: 'string', default: '8' },
    only: { type: 'string', default: 'grows,worst,many' },
  },
});
const parts: ReadonlySet<string> = new Set(options.only.split(','));
const speedOfWorst = Number(options.speed);
const requestCount = options.quick ? 60 : 200;
/** Of the replays of a limit that has room for many calls, by so many callers. */
const longCount = 1_200;
const callers = 100;
const killEveryS = 20;
/** Answers that the router has seen before. */
const knownCount = 1_000;

const ceilings = options.quick ? [0.9, 1.1] : [0.5, 0.9, 1.05, 1.1, 1.5];
const slow = { most: 4_096, grows: true, speed: 1, callers: null, killEveryS: null } as const;
const scenarios: readonly Scenario[] = [1, 4].flatMap((servers) => [
  { ...slow, servers, ceiling: null },
  ...ceilings.flatMap((ceiling) => [4_096, 32_000].map((most) => ({ ...slow, servers, ceiling, most }))),
]);
const beside: readonly Scenario[] = ceilings.flatMap((ceiling) =>
  [4_096, 32_000].map((most) => ({ ...slow, servers: 1, ceiling, most, grows: false, speed: speedOfWorst })),
);

interface Servers {
  readonly all: readonly CapstanServer[];
  readonly names: readonly string[];
  readonly databaseUrl: string;
}

async function startServers(place: Place): Promise<Servers> {
  const database = await createDatabases(place)('capstan', countingStatements);
  const { environment, program, ...first } = await startCapstan(place, database);
  const others = await Promise.all(
    [2, 3, 4].map(async (number) => {
      const port = await place.nextPort();
      const url = `http://127.0.0.1:${port}`;
      const own = { ...environment, PORT: String(port) };
      const spec = {
        ...describeServer({ dataDir: place.dataDir, environment: own }, url),
        name: `server ${number}`,
      };
      await place.supervisor.start({ ...spec, ...program });
      return { ...first, url, part: spec.name };
    }),
  );
  const all = [first, ...others];
  return { all, names: all.map(({ part }) => part), databaseUrl: database.databaseUrl };
}

async function register(
  { all: [first], databaseUrl }: Servers,
  { url }: Provider,
  lengths: Lengths,
): Promise<void> {
  const { name, version, cost_model } = model;
  await request(first as CapstanServer, 'POST', '/v1/capabilities', {
    name,
    version,
    cost_model,
    endpoint: url,
    spec_url: `${url}/spec`,
    health_url: `${url}/health`,
    settle: 'reported',
    shared_with: 'all',
    tags: [],
    max_concurrency: 1_000,
  });
  const client = new pg.Client(databaseUrl);
  await client.connect();
  await client.query('update instance set lengths = $1', [lengths]);
  await client.end();
}

function show({ servers, ceiling, most, grows, ...facts }: Replayed): string {
  const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
  return [
    String(servers),
    ceiling === null ? 'none' : ceiling.toFixed(2),
    String(most),
    grows ? 'grows' : 'worst case',
    percent(facts.finished),
    percent(facts.cut),
    percent(facts.useful),
    percent(facts.spent),
    String(facts.over),
    facts.kills === 0 ? '' : `${facts.kills}, ${facts.held}`,
    facts.seconds.toFixed(1),
    facts.pieces.toFixed(1),
    facts.effort.statements.toFixed(1),
    facts.effort.serversMs.toFixed(0),
    facts.effort.postgresMs.toFixed(0),
  ].join(' | ');
}

/** The supervisor starts it again. */
function killOf({ supervisor }: Place, names: readonly string[]) {
  return (server: number): void => {
    const found = supervisor.processes().find(({ name }) => name === names[server]);
    if (found !== undefined) process.kill(found.pid, 'SIGKILL');
  };
}

const columns =
  'servers | ceiling | most tokens | hold | finished | cut | money in finished | spent | over, nano-USD | kills, then held | s | per 1,000 tokens: pieces | statements | ms of servers | ms of Postgres';

async function bench(place: Place): Promise<boolean> {
  const provider = await startProvider();
  const { names, ...servers } = await startServers(place);
  const draw = createTrace(options.trace ?? null, 7);
  const known = Array.from({ length: knownCount }, () => draw().outputTokens);
  await register({ ...servers, names }, provider, known.reduce<Lengths>(addLength, []));
  const requests = Array.from({ length: requestCount }, draw);
  const manyRequests = Array.from({ length: longCount }, draw);
  const [operator] = servers.all as [CapstanServer];
  const { databaseUrl, all } = servers;
  const ofPlace = (): ReadonlyMap<string, number> =>
    new Map(place.supervisor.processes().map(({ name, pid }) => [name, pid]));
  const meter = await createMeter(databaseUrl, ofPlace);
  const world = { meter, servers: all, operator, databaseUrl, provider, kill: killOf(place, names) };
  say(columns);
  const rows: Replayed[] = [];
  const play = async (scenario: Scenario, list: readonly ChatRequest[]): Promise<void> => {
    const row = await replay(world, list, scenario);
    rows.push(row);
    say(show(row));
  };
  if (parts.has('grows')) for (const scenario of scenarios) await play(scenario, requests);
  if (parts.has('worst')) for (const scenario of beside) await play(scenario, requests);
  if (parts.has('many')) {
    await play({ ...slow, servers: 4, ceiling: 0.9, callers }, manyRequests);
    for (const name of names) place.mayDie.add(name);
    await play({ ...slow, servers: 4, ceiling: 1.1, callers, killEveryS }, manyRequests);
  }
  provider.close();
  await meter.close();
  const missed = findMissedBars(rows);
  for (const bar of missed) say(`missed: ${bar}`);
  return missed.length === 0;
}

await runBench(bench);
