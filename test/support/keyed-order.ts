/**
 * A call under an Idempotency-Key, as a client of the API makes it: it retries with the same key while the answer asks
 * for it.
 */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { CancelSource } from '@capstan/core/cancellation';
import type { ExecAnswer } from '@capstan/core/contracts/decision';
import type { Json } from '@capstan/core/contracts/primitives';
import { type AppError, toAppError } from '@capstan/core/errors/app-error';
import { type CallCtx, makeDirectCall } from '../../src/use-cases/calls/direct-calls.ts';
import { aCallingKey } from './factories.ts';
import type { CallOrder, CallReport } from './router-messages.ts';

function ask(ctx: CallCtx, order: CallOrder): Promise<ExecAnswer | AppError> {
  const body = JSON.stringify(order.input);
  const asked = makeDirectCall(ctx, {
    caller: aCallingKey({ project_id: order.projectId }),
    capability: order.capability,
    request: { input: order.input, tags: [], priority: order.priority, timeout_ms: order.timeoutMs },
    idempotency: { key: order.key, bodySha256: createHash('sha256').update(body).digest() },
    signal: new CancelSource(),
  });
  return asked.then(({ answer }) => answer, toAppError);
}

export async function makeKeyedCall(ctx: CallCtx, order: CallOrder): Promise<CallReport> {
  const startedAt = performance.now();
  for (;;) {
    const answer = await ask(ctx, order);
    const report = { key: order.key, costUsd: 0, durationMs: performance.now() - startedAt };
    if (!(answer instanceof Error)) {
      const { chosen: endpoint } = answer.routing;
      return {
        ...report,
        kind: 'succeeded',
        code: null,
        message: null,
        endpoint,
        answer: answer as unknown as Json,
      };
    }
    const { code, message, retryAfterS } = answer;
    if (retryAfterS === undefined || report.durationMs > order.patienceMs) {
      return { ...report, kind: 'failed', code, message, endpoint: null, answer: null };
    }
    await sleep(retryAfterS * 1_000);
  }
}
