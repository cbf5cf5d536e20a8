/**
 * What a day of 10⁶ paid chat completions adds to the tables, measured at a tenth of it:
 * `npm run bench -- day [--minutes 10] [--calls 100000] [--json]`. A project's day, a key and a label have budgets. Then
 * the retention deletes, with a clock that is moved. Exit code 1 when a call fails, when the pace is not kept, or when a
 * budget differs from its attempts.
 */
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { type Config, ConfigSchema } from '../../src/config.ts';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { findDrift } from '../../src/db/money/budget-drift.ts';
import { purge, type Retention } from '../../src/use-cases/retention/purge.ts';
import { readProcessorTime } from '../engine/processor-time.ts';
import { registerPaidModel, request } from '../router/register.ts';
import { startCapstan, startUpstream } from '../router/stack.ts';
import { type CapstanServer, describeLabelled, paidModel } from '../router/systems.ts';
import { type Place, runBench, say } from '../shared/run-bench.ts';
import { startDatabase } from '../shared/start-database.ts';
import { type DayBooks, openDayBooks } from './books.ts';
import { type Day, type Purged, type Stretch, toTable } from './result.ts';
import { measureStatement } from './statement-cost.ts';
import { callSteadily } from './steady-calls.ts';

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    calls: { type: 'string', default: '100000' },
    json: { type: 'boolean', default: false },
  },
});
const minutes = Number(options.minutes);
const calls = Number(options.calls);
const tenths = 10;
const label = 'team=ads';

/** The budgets that every call draws on, next to that of the project's day. */
async function setBudgets(capstan: CapstanServer): Promise<void> {
  const answer = await request(capstan, 'GET', '/v1/keys');
  const { items } = (await answer.json()) as { items: { key_id: string }[] };
  for (const scope of [`key:${items[0]?.key_id}`, `label:${label}`])
    await request(capstan, 'PUT', `/v1/budgets/scoped/${encodeURIComponent(scope)}`, { limit_usd: 1_000 });
}

interface Sources {
  readonly capstan: CapstanServer;
  readonly books: DayBooks;
  readonly pids: () => ReadonlyMap<string, number>;
}

/** Makes the calls of a tenth of the time. */
async function playStretch({ capstan, books, pids }: Sources): Promise<Stretch> {
  const system = describeLabelled(capstan, paidModel, label);
  const look = async () => ({ work: await books.work(), times: readProcessorTime(pids()) });
  const before = await look();
  const pace = { perSecond: calls / (minutes * 60), durationMs: (minutes * 60_000) / tenths };
  const made = await callSteadily(system, pace);
  const after = await look();
  const shown = ['server', 'Postgres'].map((part) => {
    const ms = (after.times.get(part) ?? 0) - (before.times.get(part) ?? 0);
    return [part, ms] as const;
  });
  return {
    calls: made,
    work: {
      transactions: after.work.transactions - before.work.transactions,
      blocks: after.work.blocks - before.work.blocks,
      logBytes: after.work.logBytes - before.work.logBytes,
    },
    processorMs: new Map(shown),
  };
}

type RetentionSettings = Pick<
  Config,
  'RUN_RETENTION_DAYS' | 'CHOICE_RETENTION_DAYS' | 'LEDGER_RETENTION_DAYS'
>;

/** As long as a server keeps rows by default. */
function defaultDays(): { readonly run: number; readonly choice: number; readonly ledger: number } {
  const { shape } = ConfigSchema;
  const daysOf = (name: keyof RetentionSettings): number => Number(shape[name].parse(undefined));
  return {
    run: daysOf('RUN_RETENTION_DAYS'),
    choice: daysOf('CHOICE_RETENTION_DAYS'),
    ledger: daysOf('LEDGER_RETENTION_DAYS'),
  };
}

const dayMs = 86_400_000;
/** Whole weeks and months are dropped once they have ended. */
const longestPart = { week: 8, month: 32 };

/** Purges as maintenance does when each kind of rows has reached its age. */
async function purgeLater(db: Db, books: DayBooks): Promise<readonly Purged[]> {
  const days = defaultDays();
  const retention: Retention = { runDays: days.run, choiceDays: days.choice, bookDays: days.ledger };
  const deleteJob = (): never => {
    throw new Error('calls without files leave no job');
  };
  const purged: Purged[] = [];
  for (const afterDays of [days.choice + longestPart.week, days.run + 1, days.ledger + longestPart.month]) {
    const now = new Date(Date.now() + afterDays * dayMs);
    const rows = await purge({ db, media: { deleteJob } }, { retention, now });
    await books.vacuum();
    purged.push({ afterDays, rows, holdings: await books.holdings() });
  }
  return purged;
}

async function measureDay(sources: Sources, databaseUrl: string): Promise<Day> {
  const { books } = sources;
  const costBefore = await measureStatement(databaseUrl);
  const before = await books.holdings();
  const stretches: Stretch[] = [];
  for (let tenth = 0; tenth < tenths; tenth++) {
    say(`${((minutes * tenth) / tenths).toFixed(1)} of ${minutes} minutes`);
    stretches.push(await playStretch(sources));
  }
  const after = await books.holdings();
  const costAfter = await measureStatement(databaseUrl);
  const { run, choice, ledger } = defaultDays();
  return {
    calls: stretches.reduce((sum, stretch) => sum + stretch.calls, 0),
    minutes,
    before,
    after,
    stretches,
    statementUs: [costBefore, costAfter],
    purged: [],
    keptDays: { attempt: run, attempt_choice: choice, ledger_entry: ledger },
  };
}

function showMaps(_name: string, value: unknown): unknown {
  return value instanceof Map ? Object.fromEntries(value) : value;
}

async function bench(place: Place): Promise<boolean> {
  say('starting Postgres, Temporal, the upstream and the server');
  const database = await startDatabase(place);
  const upstream = await startUpstream(place);
  const capstan = await startCapstan(place, database);
  await registerPaidModel(capstan, upstream);
  await setBudgets(capstan);
  const books = await openDayBooks(database.databaseUrl);
  const db = connectDatabase(database.databaseUrl, 2, 0);
  const pids = () => new Map(place.supervisor.processes().map(({ name, pid }) => [name, pid]));
  try {
    const day = await measureDay({ capstan, books, pids }, database.databaseUrl);
    const drift = await findDrift(db);
    for (const one of drift) say(`a budget differs from its attempts: ${JSON.stringify(one)}`);
    say('deleting what is past its retention');
    const whole = { ...day, purged: await purgeLater(db, books) };
    const machine = `${cpus().length} × ${cpus()[0]?.model.trim()}, Node ${process.version}`;
    console.log(options.json ? JSON.stringify(whole, showMaps, 2) : toTable(whole, machine));
    return drift.length === 0;
  } finally {
    await db.destroy();
    await books.close();
  }
}

await runBench(bench);
