/** A router as a process: makes the calls of its parent, and ends with it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { CallEnd } from '@capstan/core/call/types';
import { readConfig } from '../../src/config.ts';
import { createLogger } from '../../src/processes/shared-context.ts';
import { aCallingKey } from './factories.ts';
import { makeKeyedCall } from './keyed-order.ts';
import type { CallOrder, CallReport, FromRouter, ToRouter } from './router-messages.ts';
import { createRouterRuntime } from './router-runtime.ts';

process.on('disconnect', () => process.exit());

function tell(message: FromRouter): void {
  void process.send?.(message);
}

const config = readConfig(process.env);
const router = await createRouterRuntime(config, createLogger(config, 'router'));

function toReport(key: string, end: CallEnd, durationMs: number): CallReport {
  return {
    key,
    kind: end.kind,
    code: 'error' in end ? end.error.code : null,
    message: 'error' in end ? end.error.message : null,
    endpoint: end.kind === 'succeeded' ? (end.attempt?.endpoint ?? null) : null,
    costUsd: end.kind === 'succeeded' ? (end.attempt?.cost_usd ?? 0) : 0,
    durationMs,
    answer: null,
  };
}

function toRequest(order: CallOrder, round: number, signal: AbortSignal) {
  return {
    projectId: order.projectId,
    caller: aCallingKey(),
    key: order.key,
    isKeyNew: order.isKeyNew && round === 1,
    step: null,
    isAtMostOnce: order.retryMax === 0,
    input: order.input,
    route: {
      capability: order.capability,
      versionRange: null,
      tags: [],
      priority: order.priority,
      ceilingUsd: order.ceilingUsd,
      timeoutMs: order.timeoutMs,
    },
    retry: { max: order.retryMax, initialMs: 100, factor: 2, maxDelayMs: 1_000 },
    round,
    maxWaitMs: order.maxWaitMs,
    signal,
  };
}

/** Retries when the end asks for it, like the owner of a step. */
async function makeCall(order: CallOrder): Promise<CallReport> {
  if (order.isKeyed) return makeKeyedCall(router.calls, order);
  const startedAt = performance.now();
  const abort = new AbortController();
  const timer =
    order.cancelAfterMs === null
      ? undefined
      : setTimeout(() => abort.abort('cancelled'), order.cancelAfterMs);
  try {
    for (let round = 1; ; round++) {
      const end = await router.callCapability(toRequest(order, round, abort.signal));
      const passedMs = performance.now() - startedAt;
      if (end.kind !== 'retry' || passedMs + end.delayMs > order.patienceMs || abort.signal.aborted) {
        return toReport(order.key, end, passedMs);
      }
      await sleep(end.delayMs);
    }
  } catch (error) {
    const { name, message } = error as Error;
    const nothing = { endpoint: null, costUsd: 0, answer: null, durationMs: performance.now() - startedAt };
    return { key: order.key, kind: 'thrown', code: name, message, ...nothing };
  } finally {
    clearTimeout(timer);
  }
}

async function runAll(id: number, orders: readonly CallOrder[], concurrency: number): Promise<void> {
  const waiting = orders[Symbol.iterator]();
  const work = async (): Promise<void> => {
    for (const order of waiting) tell({ kind: 'ended', id, report: await makeCall(order) });
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  tell({ kind: 'done', id });
}

process.on('message', async (message: ToRouter) => {
  switch (message.kind) {
    case 'refresh':
      await router.fleet.refresh();
      return tell({ kind: 'done', id: message.id });
    case 'run':
      return runAll(message.id, message.orders, message.concurrency);
    case 'deregister': {
      const { projectId, name, ...body } = message.goodbye;
      const by = { project_id: projectId, key_id: 'key_of_a_scenario' };
      const deregistered = await router.registry.deregister(by, name, body);
      return tell({ kind: 'done', id: message.id, deregistered });
    }
    case 'stop':
      await router.close();
      process.exit();
  }
});
tell({ kind: 'ready' });
