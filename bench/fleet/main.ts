/**
 * Placing by what is loaded beside a choice that knows nothing of it: `npm run bench -- fleet [--traffic FILE --loads FILE]
 * [--seeds N] [--speed N] [--only simulated,live,free,short] [--sizes 32,16,4]`. Requests for image models arrive at random in
 * the order of a trace, on 32 instances at a load of 0.7 and on 16 at 0.5, which hold one model each; and 1,000 arrive at once on 4. In
 * virtual time the whole trace passes the choice and the lines of the router. Then its first hours, sped up, are runs of a
 * real server and worker on boxes that load; both choices play at the same time. Without files, requests are drawn from
 * distributions that were fitted to a public trace. Last, a batch on one free slot beside an instance that costs, and short
 * calls with long loads. Exit code 1 when a bar is missed.
 */
import { parseArgs } from 'node:util';
import { describeWorker } from '../../src/dev/service-processes.ts';
import { startCapstan } from '../router/stack.ts';
import type { CapstanServer } from '../router/systems.ts';
import { type Place, runBench, say } from '../shared/run-bench.ts';
import { type Database, startDatabase } from '../shared/start-database.ts';
import { describeLoad, findMissedBars, findMissedFree, findMissedShort } from './bars.ts';
import { type FreeFirst, playFreeFirst } from './free-first.ts';
import { type Live, type LiveSetting, playLive } from './live.ts';
import { playShortWork, type ShortWork } from './short-work.ts';
import { findWorstModel, type Played, percentile, type Reports, type Setting, simulate } from './simulate.ts';
import { createTrace, type Trace } from './trace.ts';

const { values: options } = parseArgs({
  options: {
    traffic: { type: 'string' },
    loads: { type: 'string' },
    seeds: { type: 'string', default: '5' },
    speed: { type: 'string', default: '8' },
    only: { type: 'string', default: 'simulated,live,free,short' },
    sizes: { type: 'string', default: '32,16,4' },
  },
});
const parts: ReadonlySet<string> = new Set(options.only.split(','));
const sizes: ReadonlySet<string> = new Set(options.sizes.split(','));

/** Requests on some instances. */
interface FleetPart extends Pick<Setting, 'instances' | 'load'> {
  /** Of the trace that are played live: in the first hours a blind choice on 16 instances is nearly as good. */
  readonly hours: number;
  /** In virtual time; absent: all. */
  readonly requests?: number;
}

const fleets = (
  [
    { instances: 32, load: 0.7, hours: 1 },
    { instances: 16, load: 0.5, hours: 6 },
    { instances: 4, load: null, hours: 0, requests: 1_000 },
  ] satisfies readonly FleetPart[]
).filter(({ instances }) => sizes.has(String(instances)));
const choices: readonly { readonly choice: Setting['choice']; readonly reports: Reports }[] = [
  { choice: 'blind', reports: 'none' },
  { choice: 'resident', reports: 'none' },
  { choice: 'resident', reports: 'right' },
  { choice: 'resident', reports: 'wrong' },
];

const columns =
  'part | instances | load | choice | reports | cold | waiting, s: median | 95 of 100 | longest | longest 95 of 100 of a model | busy, h | twice';

function show(part: string, row: Played & Partial<Pick<Live, 'twice'>>): string {
  const { instances, load, choice, reports } = row.setting;
  const seconds = (part: number): string => percentile(row.waits, part).toFixed(0);
  return [
    part,
    String(instances),
    describeLoad(load),
    choice,
    reports,
    `${(100 * row.cold).toFixed(1)} %`,
    seconds(0.5),
    seconds(0.95),
    seconds(1),
    row.worstModelS.toFixed(0),
    (row.busyS / 3_600).toFixed(1),
    String(row.twice ?? ''),
  ].join(' | ');
}

function describeFree({ busy, paid, withoutResult }: FreeFirst): string {
  const part = `${(100 * busy).toFixed(0)} %`;
  return `free slot busy ${part} of the time | calls that cost ${paid} | called without a result ${withoutResult}`;
}

/** Several seeds together. */
function merge(rows: readonly Played[], requests: Trace['requests']): Played {
  const [first] = rows as readonly [Played];
  const mean = (value: (row: Played) => number): number =>
    rows.reduce((sum, row) => sum + value(row), 0) / rows.length;
  const waits = rows.flatMap((row) => row.waits);
  const modelOf = (at: number): string => requests[at % requests.length]?.model ?? '';
  return {
    setting: first.setting,
    waits,
    cold: mean(({ cold }) => cold),
    busyS: mean(({ busyS }) => busyS),
    worstModelS: findWorstModel(waits, modelOf, rows.length),
  };
}

function playSimulated({ requests, loads }: Trace): Played[] {
  return fleets.flatMap(({ requests: count, instances, load }: FleetPart) =>
    choices.map((choice) => {
      const seeds = Array.from({ length: Number(options.seeds) }, (_, at) => at + 1);
      const part = { requests: requests.slice(0, count), loads };
      const rows = seeds.map((seed) => simulate(part, { instances, load, ...choice, seed }));
      const row = merge(rows, part.requests);
      say(show('simulated', row));
      return row;
    }),
  );
}

async function startServer(place: Place, database: Database): Promise<CapstanServer> {
  process.env.ALLOWED_CIDRS = '0.0.0.0/0'; // the boxes have an address of this machine
  process.env.OPEN_RUNS_PER_PROJECT = '100000';
  const server = await startCapstan(place, database);
  const { dataDir } = place;
  await place.supervisor.start(describeWorker({ dataDir, environment: server.environment }));
  return server;
}

async function playAll(server: CapstanServer, { requests, loads }: Trace): Promise<Live[]> {
  const speed = Number(options.speed);
  const play = async (part: Trace, what: string, setting: LiveSetting): Promise<Live> => {
    const row = await playLive(server, part, setting);
    say(show(`${what}, ${speed} times as fast`, row));
    return row;
  };
  const rows: Live[] = [];
  const meanS = requests.reduce((sum, { workS }) => sum + workS, 0) / requests.length;
  for (const { instances, load, hours } of fleets) {
    if (load === null) continue;
    const part = {
      requests: requests.slice(0, Math.round((hours * 3_600 * instances * load) / meanS)),
      loads,
    };
    const shared = { instances, load, reports: 'none', seed: 1, speed, capabilities: 1 } as const;
    const both = (['blind', 'resident'] as const).map((choice) =>
      play(part, `runs of ${hours} h`, { ...shared, choice }),
    );
    rows.push(...(await Promise.all(both)));
  }
  const hosts = { instances: 8, load: 0.7, choice: 'blind', reports: 'none', seed: 1, speed } as const;
  const few = { requests: requests.slice(0, 400), loads };
  return [...rows, await play(few, '2 capabilities a host', { ...hosts, capabilities: 2 })];
}

interface Real {
  readonly live: readonly Live[];
  readonly free: FreeFirst | null;
  /** Blind, then by what is loaded. */
  readonly short: readonly ShortWork[];
}

async function playShort(server: CapstanServer): Promise<ShortWork[]> {
  const rows: ShortWork[] = [];
  for (const affinity of [null, '{{ input.model }}']) {
    const row = await playShortWork(server, affinity);
    const choice = affinity === null ? 'blind' : 'resident';
    say(`short work | ${choice} | calls ${row.calls} | loads ${row.loads} | ${row.tookS.toFixed(1)} s`);
    rows.push(row);
  }
  return rows;
}

async function playReal(place: Place, trace: Trace): Promise<Real> {
  const database = await startDatabase(place);
  const server = await startServer(place, database);
  const live = parts.has('live') ? await playAll(server, trace) : [];
  const free = parts.has('free') ? await playFreeFirst(server, database.databaseUrl) : null;
  if (free !== null) say(describeFree(free));
  return { live, free, short: parts.has('short') ? await playShort(server) : [] };
}

async function bench(place: Place): Promise<boolean> {
  const { traffic, loads } = options;
  const files = traffic === undefined || loads === undefined ? null : { traffic, loads };
  const trace = createTrace(files, { seed: 7 });
  say(columns);
  const rows = parts.has('simulated') ? playSimulated(trace) : [];
  const isReal = ['live', 'free', 'short'].some((part) => parts.has(part));
  const { live, free, short } = isReal ? await playReal(place, trace) : { live: [], free: null, short: [] };
  const missed = [
    ...findMissedBars(rows, live, files === null ? 'drawn' : 'trace'),
    ...(free === null ? [] : findMissedFree(free)),
    ...findMissedShort(short),
  ];
  for (const bar of missed) say(`missed: ${bar}`);
  return missed.length === 0;
}

await runBench(bench);
