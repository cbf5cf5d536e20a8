/** The database away in ways without a report: a connection that is silent, one that breaks in mid-claim. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { costsWithinMs } from '../../src/api/routes/money.ts';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { execOn, registerInstance } from '../support/direct-calls.ts';
import { echo, type Instance } from '../support/fleet.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { waitFor } from '../support/wait.ts';

const leaseMs = 3_000;
const cost_model = { type: 'per_call', rate_usd: 0.01 };

let api: TestApi;
let way: TcpProxy;
let instance: Instance;
beforeAll(async () => {
  const wayTo = async (host: string): Promise<string> => {
    way = await startTcpProxy(host);
    return way.address;
  };
  api = await startTestApi({ LEASE_MS: leaseMs }, { wayTo, keyTrustMs: 0 });
  instance = await registerInstance(api, { name: 'press', cost_model, max_concurrency: 8 });
});
afterEach(async () => {
  await way.cut();
  await way.restore();
});
afterAll(async () => {
  await instance.stop();
  await api.close();
});

interface Attempt {
  readonly state: string;
  readonly settled_nano: string | null;
  readonly is_leased: boolean;
}

async function readAttempt(): Promise<Attempt | undefined> {
  const { rows } = await api.db.raw<{ rows: Attempt[] }>(
    `select state, settled_nano, lease_until > started_at + ? * interval '1 millisecond' as is_leased
     from attempt order by started_at desc limit 1`,
    [2 * leaseMs],
  );
  return rows[0];
}

const isWaiting = "wait_event_type = 'Lock'";

async function countBackends(which: string): Promise<number> {
  const { rows } = await api.db.raw<{ rows: unknown[] }>(
    `select 1 from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and (${which})`,
  );
  return rows.length;
}

test('the lease of a call is renewed although the connection that did so has fallen silent', async () => {
  let answer = (): void => undefined;
  instance.handle = (exec, response) => {
    answer = () => void echo(exec, response);
  };
  const call = execOn(api, 'press');
  await waitFor('the call', () => instance.execs.length === 1);
  const held = await api.db.transaction();
  await held.raw("select 1 from attempt where state = 'dispatched' for update");
  await waitFor('a renewal to be under way', () =>
    countBackends(`${isWaiting} and query like '%lease_until%'`),
  );
  expect(way.silence()).toBeGreaterThan(0);
  await held.commit();
  await waitFor('the lease to be renewed for twice its time', async () => (await readAttempt())?.is_leased);
  answer();
  expect((await call).status).toBe(200);
  await waitFor('the end', async () => (await readAttempt())?.state === 'settled');
});

test('a claim whose answer was lost is given back, also when it is made only after that', async () => {
  const held = await api.db.transaction();
  await held.raw("select 1 from instance where name = 'press' for update");
  const call = execOn(api, 'press');
  await waitFor('the claim to wait', () => countBackends(`${isWaiting} and query like '%settle_and_claim%'`));
  const before = instance.execs.length;
  await way.cut();
  await way.restore();
  expect((await call).status).toBe(503);
  const isGivenBack = `${isWaiting} or state = 'idle' and query like '%settle_and_claim%'`;
  await waitFor('it to be given back', async () => (await countBackends(isGivenBack)) >= 2);
  await held.commit();
  const attempt = await waitFor('the claim', async () => {
    const seen = await readAttempt();
    return seen?.state === 'released' ? seen : undefined;
  });
  expect(attempt.settled_nano).toBe('0');
  expect(instance.execs.length).toBe(before);
  await waitFor('nothing to be reserved', async () => {
    const reserved = await api.db('budget').sum('reserved_nano as nano').first();
    return reserved?.nano === '0';
  });
});

test('while the database is silent, /livez answers at once, and costs are refused later', async () => {
  // Else a connection that the test before has cut would refuse them at once.
  await waitFor('costs to be told', async () => (await api.call('/v1/costs')).status === 200);
  way.silence(true);
  const order: string[] = [];
  const costs = api.call('/v1/costs').finally(() => order.push('costs'));
  expect((await api.call('/livez')).status).toBe(200);
  order.push('livez');
  const { status, headers } = await costs;
  expect([status, headers.get('retry-after')]).toEqual([503, '1']);
  expect(order).toEqual(['livez', 'costs']);
  expect(costsWithinMs).toBeLessThan(4_000); // `capstan costs` waits no longer: patience.test.ts
});

// How soon: `npm run bench -- attacks`.
test('while the database is silent, the server is not ready; it is ready again afterwards', async () => {
  expect((await api.call('/readyz')).status).toBe(200);
  way.silence(true);
  // What was asked within the last second is answered as it was.
  const body = await waitFor('it to be not ready', async () => {
    const [status, answer] = await readJson(api.call('/readyz'));
    return status === 503 && answer;
  });
  expect(body).toEqual({ ready: false, detail: { database: 'does not answer', temporal: 'ok' } });
  await way.cut();
  await way.restore();
  await waitFor('it to be ready', async () => (await api.call('/readyz')).status === 200);
});
