/** Five hundred instances; the clock is moved by shifting their times into the past. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { noMetrics } from '@capstan/core/telemetry/telemetry';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { choosePort } from '../../../src/dev/ports.ts';
import { createBudgetKeeper } from '../../../src/parts/budget-keeper.ts';
import { createMaintenance } from '../../../src/parts/maintenance.ts';
import { createDuties } from '../../../src/use-cases/maintenance.ts';
import { aDeliveryCtx } from '../../support/delivery.ts';
import { idleParts } from '../../support/maintenance.ts';
import { waitFor } from '../../support/wait.ts';
import { answerJson } from './fake-instance.ts';
import { openRegistryBench, project, type RegistryBench, silentLogger } from './registry-bench.ts';

const count = 500;
const affected = 300;

let bench: RegistryBench;
/** Answers for all that live, each at a path of its own. */
let server: Server;
let living: string;
/** Nothing listens there. */
let dead: string;
beforeAll(async () => {
  bench = await openRegistryBench();
  server = createServer((_, response) =>
    answerJson(response, { status: 'ok', name: 'fleet', version: '1.0.0', uptime_ms: 90_000 }),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  living = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  dead = `http://127.0.0.1:${await choosePort([])}`;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await bench.close();
});

beforeEach(async () => {
  await bench.db('instance').delete();
  await bench.db.raw(
    `insert into instance (instance_id, owner_project, name, endpoint, version, spec_url, health_url, cost_type,
       rate_usd, tags, max_concurrency, state, spec_digest)
     select 'ins_' || n, ?, 'fleet', at, '1.0.0', at || '/spec', at || '/health', 'free', 0, '{}', 1, 'up', 'd'
     from generate_series(1, ?) n, lateral (select ? || '/' || n as at) e`,
    [project, count, living],
  );
});

/** As maintenance does. */
async function probeAll(): Promise<void> {
  while ((await bench.registry.probeDue(50)) === 50);
}

async function states(): Promise<Record<string, number>> {
  const { rows } = await bench.db.raw('select state, count(*)::int from instance group by 1');
  return Object.fromEntries(rows.map((row: { state: string; count: number }) => [row.state, row.count]));
}

/** All but the affected send their heartbeats. */
function beatOthers(): Promise<unknown> {
  return bench.db.raw(
    `update instance set last_heartbeat_at = now() where substr(instance_id, 5)::int > ${affected}`,
  );
}

it('an outage of ours of five minutes loses none of 500, and maintenance does not wait between rounds', async () => {
  await bench.age('%', 300);
  const { db, registry } = bench;
  const budgets = createBudgetKeeper({ db, logger: silentLogger, metrics: noMetrics });
  const maintenance = createMaintenance({
    db,
    duties: createDuties(aDeliveryCtx(db), { ...idleParts, probeDue: registry.probeDue, budgets }),
    intervalMs: 30_000,
    logger: silentLogger,
  });
  maintenance.start();
  const seen = new Set<string>();
  try {
    await waitFor(
      'everything is probed and up, sooner than ten rounds take at one per interval',
      async () => {
        const now = await states();
        for (const state of Object.keys(now)) seen.add(state);
        const waiting = await bench
          .db('instance')
          .where('next_probe_at', '<', bench.db.raw(`now() + interval '60 s'`));
        return now.up === count && seen.has('suspect') && waiting.length === 0;
      },
      100_000,
    );
  } finally {
    await maintenance.close();
  }
  expect([...seen].sort()).toEqual(['suspect', 'up']);
  expect(await states()).toEqual({ up: count });
});

it('60 % that send no heartbeats but answer are not removed', async () => {
  for (let minutes = 0; minutes < 10; minutes++) {
    await bench.age('%', 60);
    await beatOthers();
    await probeAll();
    expect(await states()).toEqual({ up: count });
  }
});

it('60 % that die are out within 90 s, and no other is', async () => {
  await bench.db.raw(
    `update instance set health_url = replace(health_url, ?, ?) where substr(instance_id, 5)::int <= ${affected}`,
    [living, dead],
  );
  let shifted = 0;
  const pass = async (seconds: number): Promise<void> => {
    shifted += seconds;
    await bench.age('%', seconds);
    await beatOthers();
    await probeAll();
  };
  await pass(74);
  while ((await states()).down !== affected && shifted < 90) await pass(1);
  expect(await states()).toEqual({ up: count - affected, down: affected });
  expect(shifted).toBeLessThan(90);
});
