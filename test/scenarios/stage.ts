/**
 * Where a scenario plays: several router processes on one database whose every commit is watched, instances in
 * processes of their own, and the repair of what the dead left open.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Registration } from '@capstan/core/contracts/capability';
import { toNanoUsd } from '@capstan/core/money/nano-usd';
import { pino } from 'pino';
import { readConfig } from '../../src/config.ts';
import { insertProject } from '../../src/db/access/project.ts';
import { loseExpiredAttempts } from '../../src/db/attempt/attempt.ts';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { newId } from '../../src/parts/ids.ts';
import { watchCommits } from '../support/commit-watch.ts';
import { findDrift, findViolations } from '../support/invariants.ts';
import {
  type JournalFleet,
  type JournalInstance,
  type MemberOptions,
  startJournalFleet,
} from '../support/journal-fleet.ts';
import type { TestRegistry } from '../support/registry.ts';
import type { CallOrder, CallReport } from '../support/router-messages.ts';
import { createRouterRuntime } from '../support/router-runtime.ts';
import { type RouterProcess, startRouter } from '../support/routers.ts';
import { waitFor } from '../support/wait.ts';

export interface Stage {
  readonly db: Db;
  /** Of a process of its own, as the API has it. */
  readonly registry: TestRegistry;
  /** @param limitUsd 0 = none @param timezone default: one in which the day has no end while the scenario plays */
  aProject(limitUsd: number, timezone?: string): Promise<string>;
  /** Starts instances, registers them for all projects, and waits until their specs are known. */
  startFleet(projectId: string, options: readonly MemberOptions[]): Promise<JournalFleet>;
  register(projectId: string, instance: JournalInstance): Promise<void>;
  readonly places: number;
  /** The router in a place; when it was killed, a new one. It has seen what is registered now. */
  router(place: number): Promise<RouterProcess>;
  /** Those in all places. */
  routers(): Promise<readonly RouterProcess[]>;
  /** Kills it with SIGKILL. */
  killRouter(place: number): Promise<void>;
  /** Calls spread evenly over the routers. @param concurrency calls in flight in each of them */
  runEverywhere(orders: readonly CallOrder[], concurrency: number): Promise<readonly CallReport[]>;
  /** Resolves when no attempt is open and no slot is leased. @throws Error when one stays open for longer than its lease allows */
  settled(): Promise<unknown>;
  /** Lists violations, when nothing is open any more. */
  findViolations(): Promise<readonly string[]>;
  close(): Promise<void>;
}

export interface StageOptions {
  readonly databaseUrl: string;
  /** Where the compiled programs are. */
  readonly packageFolder: string;
  readonly routers: number;
  readonly leaseMs: number;
  /** Where journals are kept, in a folder of their own. */
  readonly folder?: string;
}

/** Of the routers' environments, in turn: none is to mind. The last two have summer time. */
const zones = ['UTC', 'Pacific/Kiritimati', 'America/New_York', 'Europe/Berlin'] as const;
const repairEveryMs = 250;
const driftEveryMs = 1_000;
/** Time until an attempt whose lease is over is closed. */
const graceMs = 5_000;

/** Midnight is at least six hours away there. */
function zoneFarFromMidnight(): string {
  const offset = 12 - new Date().getUTCHours();
  return `Etc/GMT${offset > 0 ? `-${offset}` : `+${-offset}`}`;
}

/** Does something again and again until it is ended. */
function repeat(everyMs: number, work: () => Promise<unknown>): { end(): Promise<void> } {
  const over = new AbortController();
  const going = (async () => {
    while (!over.signal.aborted) {
      await work();
      await sleep(everyMs, undefined, { signal: over.signal }).catch(() => undefined);
    }
  })();
  going.catch(() => undefined);
  return {
    end: () => {
      over.abort();
      return going;
    },
  };
}

export async function openStage(options: StageOptions): Promise<Stage> {
  const { databaseUrl, packageFolder, routers: count, leaseMs, folder: parent = tmpdir() } = options;
  const logger = pino({ level: process.env.TEST_LOGS ? 'info' : 'silent' });
  const config = readConfig({ DATABASE_URL: databaseUrl, LEASE_MS: String(leaseMs), DATABASE_POOL: '6' });
  const [folder, runtime] = await Promise.all([
    mkdtemp(join(parent, 'capstan-scenarios-')),
    createRouterRuntime(config, logger),
  ]);
  const { registry } = runtime;
  const db = connectDatabase(databaseUrl, 4, 60_000);
  await watchCommits(db);
  const start = (place: number) => {
    const timezone = zones[place % zones.length] as string;
    return startRouter({ packageFolder, databaseUrl, leaseMs, timezone });
  };
  const places = Array.from({ length: count }, (_, place) => start(place));
  await Promise.all(places);
  const fleets: JournalFleet[] = [];
  const drifts: string[] = [];
  const repair = repeat(repairEveryMs, () => Promise.all([loseExpiredAttempts(db), registry.probeDue()]));
  const watch = repeat(driftEveryMs, async () => drifts.push(...(await findDrift(db))));

  const register: Stage['register'] = async (projectId, { endpoint, ...member }) => {
    const urls = { endpoint, spec_url: `${endpoint}/spec`, health_url: `${endpoint}/health` };
    const shared = { ...member, ...urls, version: '1.0.0', shared_with: 'all' };
    await registry.register(projectId, Registration.parse(shared));
  };

  const router: Stage['router'] = async (place) => {
    const known = places[place];
    const current = await known;
    if (current?.isOver() === false) {
      await current.refresh();
      return current;
    }
    if (places[place] === known) places[place] = start(place);
    return places[place] as Promise<RouterProcess>;
  };

  const routers: Stage['routers'] = () => Promise.all(places.map((_, place) => router(place)));

  const isAnyOpen = async (): Promise<boolean> => {
    const attempts = db('attempt').whereIn('state', ['reserved', 'dispatched']);
    const leases = db('slot_lease').whereRaw('slots > 0 and expires_at > clock_timestamp()');
    return (await attempts.first()) !== undefined || (await leases.first()) !== undefined;
  };
  const settled: Stage['settled'] = () =>
    waitFor(
      'every attempt to be closed and every lease to be over',
      async () => !(await isAnyOpen()),
      leaseMs + graceMs + 5_000,
    );

  return {
    db,
    registry,
    register,
    router,
    routers,
    settled,
    places: count,
    killRouter: async (place) => (await places[place])?.kill(),
    aProject: async (limitUsd, timezone = zoneFarFromMidnight()) => {
      const project = { project_id: newId('project'), name: 'scenario', timezone };
      await insertProject(db, { ...project, daily_limit_nano: toNanoUsd(limitUsd) });
      return project.project_id;
    },
    startFleet: async (projectId, options) => {
      const fleet = await startJournalFleet({ folder, packageFolder }, options);
      fleets.push(fleet);
      await Promise.all(fleet.instances.map((instance) => register(projectId, instance)));
      const keys = fleet.instances.map(({ name, endpoint }) => [name, endpoint]);
      await waitFor('the specs to be read', async () => {
        const unread = await db('instance')
          .whereIn(['name', 'endpoint'], keys)
          .whereNull('spec_digest')
          .first();
        return unread === undefined;
      });
      return fleet;
    },
    runEverywhere: async (orders, concurrency) => {
      const all = await routers();
      const reports = await Promise.all(
        all.map((one, at) =>
          one.run(
            orders.filter((_, order) => order % all.length === at),
            concurrency,
          ),
        ),
      );
      return reports.flat();
    },
    findViolations: async () => {
      const open = await settled().then(
        () => [],
        (error: Error) => [error.message],
      );
      return [...open, ...drifts, ...(await findViolations(db, fleets))];
    },
    close: async () => {
      await Promise.all([repair.end(), watch.end()]);
      await Promise.all([
        ...places.map(async (one) => (await one).stop()),
        ...fleets.map((fleet) => fleet.kill()),
      ]);
      await runtime.close();
      await db.destroy();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
