/** A process does not turn at one stage of a call, for longer than its lease: one call, for its own time. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { CancelSource } from '@capstan/core/cancellation';
import { Registration } from '@capstan/core/contracts/capability';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { readConfig } from '../../../src/config.ts';
import { newId } from '../../../src/parts/ids.ts';
import type { FreezeWatch } from '../../../src/processes/freeze-watch.ts';
import { useDatabase } from '../../support/database.ts';
import { aCallingKey, aProject } from '../../support/factories.ts';
import { isLong } from '../../support/long.ts';
import { createRouterRuntime } from '../../support/router-runtime.ts';
import { waitFor } from '../../support/wait.ts';

const leaseMs = 1_000;
const blockMs = 3_000;
const rateUsd = 0.001;

/** Prints a line for each call, and works as long as the call asks. */
const program = `
const facts = { name: 'works', version: '1.0.0' };
const cost_model = { type: 'per_second', rate_usd: ${rateUsd} };
const spec = { ...facts, description: 'works', input: { type: 'object' }, output: { type: 'object' }, cost_model };
require('node:http').createServer(async (request, response) => {
  const send = (body) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  if (request.url === '/health') return send({ status: 'ok', ...facts, uptime_ms: process.uptime() * 1000 });
  if (request.url === '/spec') return send(spec);
  let text = '';
  for await (const part of request) text += part;
  console.log('called');
  setTimeout(() => send({ ok: true, output: {} }), JSON.parse(text).worksMs);
}).listen(0, '127.0.0.1', function () { console.log(this.address().port); });
`;

const { db, url } = useDatabase(4);
let child: ChildProcess;
let router: Awaited<ReturnType<typeof createRouterRuntime>>;
let projectId = '';
let calls = 0;

function block(): void {
  const until = performance.now() + blockMs;
  while (performance.now() < until);
}

/** After what has been sent is on its way. */
function blockSoon(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(() =>
      setImmediate(() => {
        block();
        resolve();
      }),
    );
  });
}

beforeAll(async () => {
  if (!isLong) return;
  const settings = { DATABASE_URL: url, DATABASE_POOL: '4', LEASE_MS: String(leaseMs) };
  router = await createRouterRuntime(readConfig(settings), pino({ level: 'silent' }));
  ({ project_id: projectId } = await aProject(db));
  child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [port] = (await once(child.stdout as NonNullable<typeof child.stdout>, 'data')) as [Buffer];
  const endpoint = `http://127.0.0.1:${Number(port.toString())}`;
  child.stdout?.on('data', (printed: Buffer) => {
    calls += printed.toString().split('called').length - 1;
  });
  const addresses = { endpoint, spec_url: `${endpoint}/spec`, health_url: `${endpoint}/health` };
  const cost_model = { type: 'per_second', rate_usd: rateUsd };
  await router.registry.register(
    projectId,
    Registration.parse({ name: 'works', version: '1.0.0', tags: [], ...addresses, cost_model }),
  );
  await waitFor('its spec to be read', () => db('instance').whereNotNull('spec_digest').first());
  await router.fleet.refresh();
  await waitFor('the thread to look', async () => {
    block();
    return (router.ctx.freezes as FreezeWatch).hasThread();
  });
});
afterEach(() => void vi.restoreAllMocks());
afterAll(async () => {
  child?.kill();
  await router?.close();
});

function call(worksMs: number) {
  return router.callCapability({
    projectId,
    caller: aCallingKey(),
    key: newId('call'),
    isKeyNew: true,
    step: null,
    input: { worksMs },
    isAtMostOnce: false,
    maxWaitMs: 15_000,
    route: {
      capability: 'works',
      tags: [],
      priority: 'standard',
      versionRange: null,
      timeoutMs: 20_000,
      ceilingUsd: null,
    },
    retry: { max: 1, initialMs: 1, factor: 1, maxDelayMs: 1 },
    round: 1,
    signal: new CancelSource(),
  });
}

/** Blocks the process once, when a part's function has begun, or has ended. @returns resolves after that */
function blockAt(part: 'claim' | 'settle', when: 'begun' | 'ended'): Promise<void> {
  const { attemptWriter } = router.ctx;
  const original = attemptWriter[part] as (...given: unknown[]) => Promise<unknown>;
  return new Promise((resolve) => {
    vi.spyOn(attemptWriter, part).mockImplementationOnce((async (...given: unknown[]) => {
      const result = original(...given);
      if (when === 'begun') await blockSoon();
      const known = await result;
      if (when === 'ended') block();
      resolve();
      return known;
    }) as never);
  });
}

async function blockWhenCalled(): Promise<void> {
  await once(child.stdout as NonNullable<typeof child.stdout>, 'data');
  block();
}

describe.runIf(isLong && process.platform === 'linux')('a process that does not turn', () => {
  it.each([
    ['while its claim is written', 300, () => blockAt('claim', 'begun')],
    ['before its request is sent', 300, () => blockAt('claim', 'ended')],
    ['while its instance works, and the answer comes', 300, blockWhenCalled],
    ['while its instance works, and longer', blockMs + 1_000, blockWhenCalled],
    ['while its end is written', 300, () => blockAt('settle', 'begun')],
  ] as const)('%s, makes one call, and charges its own time', async (_, worksMs, blockThere) => {
    const before = calls;
    const blocked = blockThere();
    const ended = call(worksMs);
    await blocked;
    const expired = await db('attempt')
      .whereIn('state', ['reserved', 'dispatched'])
      .whereRaw('lease_until < clock_timestamp()');
    expect(expired).toEqual([]);
    expect(await ended).toMatchObject({ kind: 'succeeded' });
    expect(calls - before).toBe(1);
    const attempt = await waitFor('its end to be stored', async () => {
      const last = await db('attempt').orderBy('started_at', 'desc').first();
      return last?.state === 'dispatched' || last?.state === 'reserved' ? undefined : last;
    });
    expect(attempt).toMatchObject({ state: 'settled', number: 1, certainty: 'exact' });
    const seconds = Number(attempt.settled_nano) / 1e9 / rateUsd;
    expect(seconds).toBeGreaterThan(worksMs / 1_000 - 0.05);
    expect(seconds).toBeLessThan(worksMs / 1_000 + 1);
  });
});
