/** Calls of a process whose event loop is blocked while their instance, a process of its own, answers. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { CancelSource } from '@capstan/core/cancellation';
import { createAddressPolicy } from '@capstan/guarded-dial/address-policy';
import { createDialGuard } from '@capstan/guarded-dial/guarded-dial';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCapabilityClient } from '../../src/clients/capability-http.ts';
import { createFreezeWatch } from '../../src/processes/freeze-watch.ts';
import { waitFor } from '../support/wait.ts';

const worksMs = 1_000;
const blockMs = 5_000;

/** Answers after its work, and closes the connection half a second later: the end of a connection is no answer. */
const instance = `
const server = require('node:http').createServer((request, response) => {
  request.resume();
  console.log('received');
  setTimeout(() => {
    response.sendDate = false;
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end('{"done":true}');
  }, ${worksMs});
});
server.keepAliveTimeout = 500;
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
`;

const freezes = createFreezeWatch({
  databaseUrl: 'postgres://nobody@127.0.0.1:1/none',
  token: 'none',
  leaseMs: 60_000,
  longestMs: 60_000,
  logger: pino({ level: 'silent' }),
});
const guard = createDialGuard(
  createAddressPolicy({ allowedCidrs: '127.0.0.0/8', allowsLoopback: true, ownListeners: [] }),
);
const client = createCapabilityClient({
  guard,
  answerLimitBytes: 1_000,
  livenessIntervalMs: 10_000,
  freezes,
});
let child: ChildProcess;
let endpoint = '';

function block(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

beforeAll(async () => {
  child = spawn(process.execPath, ['-e', instance], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [port] = (await once(child.stdout as NonNullable<typeof child.stdout>, 'data')) as [Buffer];
  endpoint = `http://127.0.0.1:${Number(port.toString())}`;
  await waitFor('the thread to look', async () => {
    block(400);
    return freezes.hasThread();
  });
});
afterAll(async () => {
  child.kill();
  await client.close();
  await freezes.close();
});

async function callBlocked(timeoutMs: number) {
  const call = { endpoint, input: {}, idempotencyKey: 'key', attempt: 1, signal: new CancelSource() };
  const made = client.call({ ...call, timeoutMs });
  await once(child.stdout as NonNullable<typeof child.stdout>, 'data');
  block(blockMs);
  return made;
}

describe.runIf(process.platform === 'linux')('a call whose answer comes while the process is blocked', () => {
  it('takes as long as its instance worked', async () => {
    // A thread that had no time to look for half a second reports another span.
    await waitFor('a call whose answer the thread has seen come', async () => {
      const { outcome, durationMs } = await callBlocked(60_000);
      expect(outcome).toEqual({ kind: 'answered', body: { done: true } });
      return durationMs >= worksMs - 50 && durationMs < blockMs;
    });
  });

  it('is answered, though its time was over before it was read', async () => {
    const { outcome, durationMs } = await callBlocked(worksMs + 1_000);
    expect(outcome).toEqual({ kind: 'answered', body: { done: true } });
    expect(durationMs).toBeLessThanOrEqual(worksMs + 1_000);
  });
});
