import { CancelSource } from '@capstan/core/cancellation';
import { Registration } from '@capstan/core/contracts/capability';
import { marginMs, leaseMs as slotLeaseMs } from '@capstan/core/routing/slot-leases';
import { pino } from 'pino';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { readConfig } from '../../../src/config.ts';
import type { CallRequest } from '../../../src/parts/calls/routed-call.ts';
import { newId } from '../../../src/parts/ids.ts';
import { useDatabase } from '../../support/database.ts';
import { aCallingKey, aClaim, aProject, claimAttempt } from '../../support/factories.ts';
import { type Instance, startInstance } from '../../support/fleet.ts';
import { createRouterRuntime } from '../../support/router-runtime.ts';
import { waitFor } from '../../support/wait.ts';

const { db, url } = useDatabase(4);
const config = readConfig({ DATABASE_URL: url, DATABASE_POOL: '4' });

type Router = Awaited<ReturnType<typeof createRouterRuntime>>;

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const end of ends.splice(0).reverse()) await end();
});

async function startRouter(): Promise<Router> {
  const router = await createRouterRuntime(config, pino({ level: 'silent' }));
  let closing: Promise<void> | null = null;
  const close = (): Promise<void> => {
    closing ??= router.close();
    return closing;
  };
  ends.push(close);
  return { ...router, close };
}

interface Stage {
  readonly router: Router;
  readonly instance: Instance;
  readonly capability: string;
  readonly projectId: string;
  readonly row: { readonly instance_id: string; readonly endpoint: string };
}

/** A router, and an instance that it knows. */
async function openStage(max_concurrency: number): Promise<Stage> {
  const [router, { project_id: projectId }] = [await startRouter(), await aProject(db)];
  const capability = `leased-${ends.length}-${max_concurrency}-${newId('call').slice(-6)}`;
  const instance = await startInstance(
    {
      request: async (_, __, body) => {
        await router.registry.register(
          projectId,
          Registration.parse({ ...Object(body), shared_with: 'all' }),
        );
        return { status: 201, body: {} } as never;
      },
    },
    { name: capability, max_concurrency },
  );
  ends.push(instance.stop);
  const row = await waitFor('its spec to be read', () =>
    db('instance').where({ endpoint: instance.endpoint }).whereNotNull('spec_digest').first(),
  );
  await router.fleet.refresh();
  return { router, instance, capability, projectId, row };
}

function aRequest({ projectId, capability }: Stage, maxWaitMs = 15_000): CallRequest {
  return {
    projectId,
    caller: aCallingKey(),
    key: newId('call'),
    isKeyNew: true,
    step: null,
    input: {},
    isAtMostOnce: false,
    maxWaitMs,
    route: {
      capability,
      tags: [],
      priority: 'standard',
      versionRange: null,
      timeoutMs: 20_000,
      ceilingUsd: null,
    },
    retry: { max: 1, initialMs: 1, factor: 1, maxDelayMs: 1 },
    round: 1,
    signal: new CancelSource(),
  };
}

async function call(stage: Stage, on = stage.router): Promise<string> {
  return (await on.callCapability(aRequest(stage))).kind;
}

async function leasedSlots({ row }: Stage): Promise<number> {
  const lease = await db('slot_lease').where({ instance_id: row.instance_id }).first('slots');
  return lease?.slots ?? 0;
}

async function lease(stage: Stage): Promise<void> {
  await waitFor('slots to be leased', async () => {
    for (let n = 0; n < 4; n++) await call(stage);
    return (await leasedSlots(stage)) > 0;
  });
}

/** Whether the next call is claimed in the database, seen while its instance works on it. */
async function isClaimed(stage: Stage): Promise<boolean> {
  const { instance, capability } = stage;
  const { handle } = instance;
  let isOpen = false;
  instance.handle = async (exec, response) => {
    isOpen = (await db('attempt').where({ capability, state: 'dispatched' }).first()) !== undefined;
    return handle(exec, response);
  };
  await call(stage);
  instance.handle = handle;
  return isOpen;
}

/** Waits until a call uses the lease, then looks whether one more does after `change`. */
async function isClaimedAfter(stage: Stage, change: () => void): Promise<boolean> {
  await waitFor('a call on a leased slot', async () => {
    for (let n = 0; n < 3; n++) await call(stage);
    return !(await isClaimed(stage));
  });
  change();
  return isClaimed(stage);
}

describe('a lease is not used', () => {
  test.each([
    ['by a process that was paused', performance, 'now'],
    ['on a machine that slept', Date, 'now'],
  ] as const)('%s until a moment before its end', async (_, clock, name) => {
    const stage = await openStage(64);
    await lease(stage);
    const real = clock[name].bind(clock);
    vi.spyOn(stage.router.fleet, 'ageMs').mockReturnValue(0);
    const isClaimedNow = await isClaimedAfter(stage, () => {
      vi.spyOn(clock, name).mockImplementation(() => real() + slotLeaseMs - marginMs);
    });
    expect(isClaimedNow).toBe(true);
  });

  test('while the view of the fleet is old', async () => {
    const stage = await openStage(64);
    await lease(stage);
    const age = vi.spyOn(stage.router.fleet, 'ageMs');
    expect(await isClaimedAfter(stage, () => age.mockReturnValue(1_001))).toBe(true);
  });

  test('when the instance declares another concurrency', async () => {
    const stage = await openStage(64);
    await lease(stage);
    await db('instance').where({ instance_id: stage.row.instance_id }).update({ max_concurrency: 9 });
    await stage.router.fleet.refresh();
    await waitFor('the slots of before to be given back', async () => {
      await call(stage);
      return (await leasedSlots(stage)) <= 6;
    });
  });
});

test('a process that ends has recorded every call, and holds no slot', async () => {
  const stage = await openStage(64);
  await lease(stage);
  const { router, instance, capability } = stage;
  const calls = Array.from({ length: 20 }, () => call(stage));
  expect(new Set(await Promise.all(calls))).toEqual(new Set(['succeeded']));
  await router.close();
  const rows = await db('attempt').where({ capability }).select('state');
  expect(rows).toHaveLength(instance.execs.length);
  expect(new Set(rows.map(({ state }) => state))).toEqual(new Set(['settled']));
  expect(await leasedSlots(stage)).toBe(0);
});

test('a slot that another router waits for is given back, while calls continue', async () => {
  const stage = await openStage(8);
  const other = await startRouter();
  let isOver = false;
  const traffic = (async () => {
    while (!isOver) await call(stage);
  })();
  await waitFor('two slots to be leased', async () => (await leasedSlots(stage)) === 2);
  const run = { run_id: '', project_id: stage.projectId };
  for (let n = 0; n < 6; n++) {
    const direct = { step: null, is_first: true, key: newId('call'), capability: stage.capability };
    const claim = aClaim(run, { ...stage.row, cost_type: 'free', rate_usd: '0' }, direct);
    await waitFor('a slot for a claim', async () => (await claimAttempt(db, claim)).outcome === 'claimed');
  }
  await other.fleet.refresh();
  expect(await call(stage, other)).toBe('succeeded');
  isOver = true;
  await traffic;
});

test('a call whose slot is lost is aborted, and its caller receives the reason', async () => {
  const stage = await openStage(8);
  await lease(stage);
  const { instance, router, row, capability } = stage;
  instance.handle = () => new Promise(() => undefined);
  vi.spyOn(router.ctx.attemptWriter, 'record').mockImplementation(async ({ ended }) => ended !== null);
  const end = router.callCapability(aRequest(stage));
  await waitFor('the call to be sent', () => instance.execs.some(({ answered }) => !answered));
  expect((await end).kind).not.toBe('succeeded');
  await waitFor('the instance to see it', () => instance.execs.at(-1)?.closed === true);
  expect(
    await db('attempt').where({ capability, state: 'dispatched', instance_id: row.instance_id }),
  ).toEqual([]);
});
