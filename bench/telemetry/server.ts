/**
 * One process that answers `POST /v1/capabilities/{name}/exec` through the API's own pipeline and the observer of
 * calls, over a call that claims, waits for an answer and settles without a database. Its environment decides what it
 * reports. Its parent asks it over IPC what it has used.
 */
import { createServer } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import type { AttemptEnding } from '@capstan/core/call/drive-call';
import { pino } from 'pino';
import { createApp } from '../../src/api/app.ts';
import type { ServerCtx } from '../../src/context.ts';
import type { CallRequest, Claimed } from '../../src/parts/calls/routed-call.ts';
import { startTelemetry } from '../../src/telemetry/start-telemetry.ts';
import {
  beginAttemptSpan,
  observeAttemptEnd,
  observeClaim,
} from '../../src/use-cases/routing/call-telemetry.ts';

const startedAt = performance.now();
const telemetry = await startTelemetry({ ...process.env, HOST: '127.0.0.1' } as never, 'server');
const startMs = performance.now() - startedAt;
const observed = { telemetry, attemptSpans: new WeakMap() };

const holder = { key_id: 'key_bench', scopes: new Set(['capability:call']), projects: ['prj_bench'] };
const request = {
  projectId: 'prj_bench',
  caller: { key_id: 'key_bench', scopes: [], names: null, token_rates: [] },
  step: null,
  route: { capability: 'bench-free', priority: 'standard' },
} as unknown as CallRequest;
const ending = {
  delivery: { outcome: { kind: 'answered', body: {} }, durationMs: 12, amount: 100_000n, certainty: 'exact' },
} as unknown as AttemptEnding;
const routing = { decision_id: 'dec_bench', chosen: 'ins_bench', tier: 'free', cost_usd: 0, attempt: 1 };

function newClaim(): Claimed {
  const instance = { instance_id: 'ins_bench', endpoint: 'http://127.0.0.1:8100', rate_usd: 0.1, tags: [] };
  return { kind: 'claimed', claim: { attempt_id: 'att_bench' }, instance, number: 1 } as unknown as Claimed;
}

/** As many turns of the event loop as a real call has: claim, request, settle. */
async function answerCall(): Promise<unknown> {
  const claimed = newClaim();
  const beganAt = performance.now();
  await setImmediate();
  observeClaim(observed, request, { end: claimed, beganAt });
  beginAttemptSpan(observed, request, claimed);
  await setImmediate();
  observeAttemptEnd(observed, { request, claimed }, ending);
  await setImmediate();
  return { ok: true, output: { text: 'answer '.repeat(30) }, routing };
}

const sizes = { BODY_LIMIT_BYTES: 1e6, DEFINITION_LIMIT_BYTES: 1e6, MEDIA_LIMIT_BYTES: 1e6 };
const ctx = {
  config: { ...sizes, RATE_LIMITS: 'off' },
  logger: pino({ level: 'warn', mixin: telemetry.logFields }),
  telemetry,
  verifiedKeys: { get: () => holder },
  fleet: { seenBy: () => ({ of: () => ({ instances: [newClaim().instance], priorMs: 1 }) }) },
  openCalls: { run: answerCall },
} as unknown as ServerCtx;
await telemetry.listen({ info: () => undefined, warn: () => undefined });
const server = createServer(createApp({ ctx }).handle);
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as { port: number }).port }));
process.on('message', () =>
  process.send?.({ ...process.cpuUsage(), rss: process.memoryUsage.rss(), startMs }),
);
process.on('disconnect', () => process.exit());
