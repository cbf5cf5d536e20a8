/**
 * Holds that grow beside reservations of the worst case: `npm run bench -- holds [--quick] [--trace FILE] [--speed N]`.
 * 200 chat requests of a public trace begin at once under a ceiling, through one and four servers, on real Postgres, with
 * a provider that writes 50 tokens a second, or N times as many. Exit code 1 when a bar is missed.
 */

import { parseArgs } from 'node:util';
import { addLength, type Lengths } from '@capstan/core/money/holds';
import pg from 'pg';
import { describeServer } from '../../src/dev/service-processes.ts';
import { request } from '../router/register.ts';
import { startCapstan } from '../router/stack.ts';
import type { CapstanServer } from '../router/systems.ts';
import { type Place, runBench, say } from '../shared/run-bench.ts';
import { startDatabase } from '../shared/start-database.ts';
import { findMissedBars } from './bars.ts';
import { type Replayed, replay, type Scenario } from './play.ts';
import { model, type Provider, startProvider } from './provider.ts';
import { createTrace } from './trace.ts';

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    trace: { type: 'string' },
    speed: { type: 'string', default: '4' },
  },
});
const speed = Number(options.speed);
const requestCount = options.quick ? 60 : 200;
/** Answers that the router has seen before. */
const knownCount = 1_000;

const ceilings = options.quick ? [0.9, 1.1] : [0.5, 0.9, 1.05, 1.1, 1.5];
const scenarios: readonly Scenario[] = [1, 4].flatMap((servers) => [
  { servers, ceiling: null, most: 4_096, grows: true },
  ...ceilings.flatMap((ceiling) =>
    [4_096, 32_000].flatMap((most) => [true, false].map((grows) => ({ servers, ceiling, most, grows }))),
  ),
]);

interface Servers {
  readonly all: readonly CapstanServer[];
  readonly databaseUrl: string;
}

async function startServers(place: Place): Promise<Servers> {
  const database = await startDatabase(place);
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
      return { ...first, url };
    }),
  );
  return { all: [first, ...others], databaseUrl: database.databaseUrl };
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
    facts.seconds.toFixed(1),
    facts.pieces.toFixed(1),
  ].join(' | ');
}

async function bench(place: Place): Promise<boolean> {
  const provider = await startProvider(speed);
  const servers = await startServers(place);
  const draw = createTrace(options.trace ?? null, 7);
  const lengths = Array.from({ length: knownCount }, () => draw().outputTokens).reduce<Lengths>(
    addLength,
    [],
  );
  await register(servers, provider, lengths);
  const requests = Array.from({ length: requestCount }, draw);
  const [operator] = servers.all as [CapstanServer];
  const world = { servers: servers.all, operator, databaseUrl: servers.databaseUrl, provider, speed };
  say(
    'servers | ceiling | most tokens | hold | finished | cut | money in finished | spent | over, nano-USD | s | pieces per 1,000 tokens',
  );
  const rows: Replayed[] = [];
  for (const scenario of scenarios) {
    const row = await replay(world, requests, scenario);
    rows.push(row);
    say(show(row));
  }
  provider.close();
  const missed = findMissedBars(rows);
  for (const bar of missed) say(`missed: ${bar}`);
  return missed.length === 0;
}

await runBench(bench);
