/**
 * Frequent free calls over four routers, which lease the slots of their instances: routers are killed and paused, and
 * an instance lowers its concurrency, while the calls continue.
 */
import type { JournalEntry } from '../support/instance-messages.ts';
import { type JournalFleet, mostAtOnce } from '../support/journal-fleet.ts';
import type { CallReport } from '../support/router-messages.ts';
import type { RouterProcess } from '../support/routers.ts';
import { waitFor } from '../support/wait.ts';
import { startLoad } from './load.ts';
import { countEnds, manyOrders } from './orders.ts';
import type { Outcome } from './outcome.ts';
import type { Stage } from './stage.ts';

interface Leasing extends Omit<Outcome, 'account'> {
  /** Leases that were in force at one moment, the most that were seen. */
  readonly leases: number;
}

interface Cast {
  readonly capability: string;
  readonly projectId: string;
  readonly fleet: JournalFleet;
}

async function startCast(stage: Stage, capability: string, max_concurrency: number): Promise<Cast> {
  const projectId = await stage.aProject(0);
  const fleet = await stage.startFleet(projectId, [
    { name: capability, max_concurrency, minMs: 1, maxMs: 4 },
  ]);
  return { capability, projectId, fleet };
}

async function countLeases({ db }: Stage, { fleet }: Cast): Promise<number> {
  const endpoints = fleet.instances.map(({ endpoint }) => endpoint);
  const rows = await db('slot_lease')
    .join('instance', 'instance.instance_id', 'slot_lease.instance_id')
    .whereIn('endpoint', endpoints)
    .whereRaw('expires_at > clock_timestamp()')
    .select('holder');
  return rows.length;
}

/** Calls that routers make while something happens: each keeps `callers` in flight. */
function startCalls(stage: Stage, { capability, projectId }: Cast, callers: number) {
  return startLoad(stage, () => manyOrders(200, { projectId, capability, maxWaitMs: 20_000 }), callers);
}

function most({ fleet }: Cast, journal: readonly JournalEntry[]): number {
  return Math.max(...fleet.instances.map(({ port }) => mostAtOnce(journal, port)));
}

/** One slot, and five hundred. */
export async function leaseOfEach(
  stage: Stage,
  { slots, rounds }: { readonly slots: number; readonly rounds: number },
): Promise<Leasing> {
  const cast = await startCast(stage, `lease-of-${slots}`, slots);
  let leases = 0;
  const load = startCalls(stage, cast, slots === 1 ? 2 : 8);
  for (let round = 0; round < rounds; round++) {
    const begun = (await cast.fleet.journal()).length;
    await waitFor('more calls', async () => {
      leases = Math.max(leases, await countLeases(stage, cast));
      return (await cast.fleet.journal()).length > begun + 100;
    });
  }
  const reports = await load.end();
  const journal = await cast.fleet.journal();
  return { ends: countEnds(reports), kills: 0, most: most(cast, journal), leases };
}

const callsEach = 240;

type Works = readonly Promise<readonly CallReport[]>[];

/** All routers call the instance, again and again until several hold leases; then `act` comes between. */
async function callAndDisturb(
  stage: Stage,
  cast: Cast,
  act: (all: readonly RouterProcess[], works: Works) => Promise<Works>,
): Promise<{ readonly reports: readonly CallReport[]; readonly leases: number }> {
  const { projectId, capability } = cast;
  const all = await stage.routers();
  const works = all.map((router) =>
    router.run(manyOrders(callsEach, { projectId, capability, maxWaitMs: 20_000 }), 6),
  );
  let areOver = false;
  const calls = Promise.all(works);
  const end = (): void => {
    areOver = true;
  };
  calls.then(end, end);
  const { leases } = await waitFor('several to hold leases, or the calls to end', async () => {
    const count = await countLeases(stage, cast);
    return count > 1 || areOver ? { leases: count } : undefined;
  });
  if (leases < 2) {
    const next = await callAndDisturb(stage, cast, act);
    return { ...next, reports: [...(await calls).flat(), ...next.reports] };
  }
  const more = await act(all, works);
  return { reports: (await Promise.all([...works, ...more])).flat(), leases };
}

/** @param rounds in each of which the next router is killed in the middle of its calls */
export async function killHolders(stage: Stage, { rounds }: { readonly rounds: number }): Promise<Leasing> {
  const cast = await startCast(stage, 'kill-holders', 16);
  Object.assign(cast.fleet, { losesRecords: true });
  const reports: CallReport[] = [];
  let leases = 0;
  for (let kills = 0; kills < rounds; kills++) {
    const round = await callAndDisturb(stage, cast, async () => {
      await stage.killRouter(kills % stage.places);
      return [];
    });
    reports.push(...round.reports);
    leases = Math.max(leases, round.leases);
  }
  return { ends: countEnds(reports), kills: rounds, most: most(cast, await cast.fleet.journal()), leases };
}

/** @param rounds in each of which the next router is stopped for longer than its lease, then continued */
export async function pauseHolders(stage: Stage, { rounds }: { readonly rounds: number }): Promise<Leasing> {
  const cast = await startCast(stage, 'pause-holders', 16);
  const { projectId, capability } = cast;
  const reports: CallReport[] = [];
  let leases = 0;
  for (let at = 0; at < rounds; at++) {
    const round = await callAndDisturb(stage, cast, async (all, works) => {
      const place = at % all.length;
      const paused = all[place] as RouterProcess;
      paused.pause();
      await Promise.all(works.filter((_, other) => other !== place));
      await waitFor('its lease to end', async () => (await countLeases(stage, cast)) === 0);
      const next = all[(place + 1) % all.length] as RouterProcess;
      const meanwhile = next.run(manyOrders(callsEach / 2, { projectId, capability, maxWaitMs: 20_000 }), 6);
      paused.resume();
      return [meanwhile];
    });
    reports.push(...round.reports);
    leases = Math.max(leases, round.leases);
  }
  return { ends: countEnds(reports), kills: 0, most: most(cast, await cast.fleet.journal()), leases };
}

/** The most at once from an entry of the journal on. */
function mostFrom(journal: readonly JournalEntry[], from: number): number {
  let [atWork, found] = [0, 0];
  for (const [at, { kind }] of journal.entries()) {
    atWork = kind === 'start' ? 0 : atWork + (kind === 'begin' ? 1 : -1);
    if (at >= from) found = Math.max(found, atWork);
  }
  return found;
}

export interface Lowered extends Leasing {
  /** The most at once after every router had seen the lower number. */
  readonly afterwards: number;
}

/** An instance of 64 slots that declares nine while routers call it. */
export async function lowerConcurrency(stage: Stage): Promise<Lowered> {
  const cast = await startCast(stage, 'lower-concurrency', 64);
  const [instance] = cast.fleet.instances as [JournalFleet['instances'][number]];
  const load = startCalls(stage, cast, 12);
  let leases = 0;
  await waitFor('routers to hold leases', async () => {
    leases = Math.max(leases, await countLeases(stage, cast));
    return leases > 1;
  });
  await stage.register(cast.projectId, { ...instance, max_concurrency: 9 });
  await Promise.all((await stage.routers()).map((router) => router.refresh()));
  const held = async (): Promise<number> => {
    const { rows } = await stage.db.raw<{ rows: [{ held: number }] }>(
      `select coalesce(sum(slots), 0)::int as held from slot_lease
       join instance using (instance_id) where endpoint = ? and expires_at > clock_timestamp()`,
      [instance.endpoint],
    );
    return rows[0].held;
  };
  await waitFor('the slots of before to be given back', async () => (await held()) <= 9);
  const before = (await cast.fleet.journal()).length;
  await waitFor('calls with nine slots', async () => (await cast.fleet.journal()).length > before + 400);
  const reports = await load.end();
  const journal = await cast.fleet.journal();
  const afterwards = mostFrom(journal, before);
  return { ends: countEnds(reports), kills: 0, most: most(cast, journal), leases, afterwards };
}
