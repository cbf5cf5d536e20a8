/**
 * Projects in zones of which one skips midnight and one has it twice spend their day's limit; then the day ends, while
 * calls are in flight, and all routers open the next one at once.
 */
import { waitFor } from '../support/wait.ts';
import { countEnds, manyOrders } from './orders.ts';
import type { Outcome } from './outcome.ts';
import type { Stage } from './stage.ts';
import { type Midnight, startOfToday, zoneAtNoon, zoneWhereItEnds } from './zones.ts';

export interface Night {
  /** Of all projects together. */
  readonly before: Outcome['ends'];
  readonly overnight: Outcome['ends'];
  readonly after: Outcome['ends'];
  /** By midnight: what each day of the project came to, the first one first. */
  readonly days: Readonly<Record<Midnight, readonly string[]>>;
}

const midnights = ['plain', 'skipped', 'twice'] as const satisfies readonly Midnight[];
/** It is set that long before it comes, and at most a second more. */
const untilMidnightMs = 500;
const capability = { short: 'pass-midnight', long: 'pass-midnight.long' } as const;

async function startInstances(stage: Stage): Promise<void> {
  const member = { max_concurrency: 256, tags: ['hosted'], shared_with: 'all' } as const;
  const cost_model = { type: 'per_call', rate_usd: 1 } as const;
  await stage.startFleet(await stage.aProject(0), [
    { ...member, cost_model, name: capability.short, minMs: 5, maxMs: 15 },
    { ...member, cost_model, name: capability.long, minMs: 2_500, maxMs: 2_600 },
  ]);
}

async function readDays({ db }: Stage, projectId: string): Promise<readonly string[]> {
  const { rows } = await db.raw<{ rows: { day: string }[] }>(
    `select format('%s of %s, %s reserved', round(spent_nano / 1e9), round(limit_nano / 1e9), reserved_nano) as day
     from budget where scope = 'project:' || ? order by window_start`,
    [projectId],
  );
  return rows.map(({ day }) => day);
}

/** @returns when it ends */
async function setMidnight({ db }: Stage, projects: readonly string[], dayStartS: number): Promise<number> {
  const endS = Math.ceil((Date.now() + untilMidnightMs) / 1_000);
  await Promise.all(
    midnights.map((midnight, at) =>
      db('project')
        .where({ project_id: projects[at] })
        .update({ timezone: zoneWhereItEnds(dayStartS, endS, midnight) }),
    ),
  );
  return endS * 1_000;
}

/** @param units each project's limit; a quarter of it is in flight at midnight */
export async function passMidnight(stage: Stage, { units }: { readonly units: number }): Promise<Night> {
  await startInstances(stage);
  const dayStartS = startOfToday();
  const projects = await Promise.all(midnights.map(() => stage.aProject(units, zoneAtNoon(dayStartS))));
  const ordersFor = (count: number, name: string) =>
    projects.flatMap((projectId) => manyOrders(count, { projectId, capability: name }));
  const open = units / 4;
  const spending = await stage.runEverywhere(ordersFor(units - open, capability.short), units);
  const overnight = stage.runEverywhere(ordersFor(open, capability.long), 3 * units);
  await waitFor('the long calls to be under way', async () => {
    const begun = await stage.db('attempt').where({ capability: capability.long });
    return begun.length >= 3 * open;
  });
  const refused = await stage.runEverywhere(ordersFor(stage.places, capability.short), 1);
  const endMs = await setMidnight(stage, projects, dayStartS);
  await waitFor('midnight', () => Date.now() >= endMs);
  const reports = await stage.runEverywhere(ordersFor(units, capability.short), 3 * units);
  const ended = await overnight;
  const late = await stage.runEverywhere(ordersFor(stage.places, capability.short), 1);
  await stage.settled();
  const days = await Promise.all(projects.map((projectId) => readDays(stage, projectId)));
  return {
    before: countEnds([...spending, ...refused]),
    overnight: countEnds(ended),
    after: countEnds([...reports, ...late]),
    days: Object.fromEntries(
      midnights.map((midnight, at) => [midnight, days[at]]),
    ) as unknown as Night['days'],
  };
}
