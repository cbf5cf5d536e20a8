import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { CancelSource } from '../../../src/core/cancellation.ts';
import type { AnswerWriter } from '../../../src/core/model-protocols/model-answer.ts';
import type { CallCtx } from '../../../src/services/calls/call-service.ts';
import { streamModel } from '../../../src/services/calls/model-calls.ts';
import { createOpenCalls } from '../../../src/services/calls/open-calls.ts';
import type { CallRequest } from '../../../src/services/routing/routed-call.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const writer: AnswerWriter = {
  open: () => ['<'],
  part: (delta) => [String(delta)],
  close: () => ['>'],
  fail: () => ['!'],
};

/** A stream whose parts come when the test says so. */
async function aStream() {
  let begin: (part: (text: string) => void) => void = () => undefined;
  let end: () => void = () => undefined;
  const begun = new Promise<(text: string) => void>((resolve) => {
    begin = resolve;
  });
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const callCapability = async ({ onDelta }: CallRequest) => {
    begin((text) => onDelta?.(text));
    await ended;
    const decision = { decision_id: 'dec_1', settled_usd: 0 };
    return { kind: 'succeeded', output: { text: 'abc' }, attempt: { decision } };
  };
  const fleet = { of: () => ({ instances: [{}] }) };
  const ctx = { callCapability, fleet, openCalls: createOpenCalls() } as unknown as CallCtx;
  const terms = {
    caller: { key_id: 'key_1', project_id: 'prj_1', scopes: new Set(['capability:call'] as const) },
    scopes: [],
    usedTokens: () => undefined,
    constraints: { priority: 'interactive' as const, tags: [], timeout_ms: 1_000 },
    idempotency: null,
    signal: new CancelSource(),
  };
  const call = { capability: 'model.fast', input: {}, writer, toError: () => ({}) };
  const opening = streamModel(ctx, terms, call);
  const part = await begun;
  part('a');
  const events = await opening;
  return {
    part,
    end,
    /** What the client has got since the last time. */
    read: async (): Promise<string> => {
      await new Promise(setImmediate);
      return String(events.read() ?? '');
    },
  };
}

test('the first part of a stream is sent at once, and parts that follow within 5 ms together', async () => {
  const { part, read } = await aStream();
  expect(await read()).toBe('<a');
  part('b');
  part('c');
  expect(await read()).toBe('');
  vi.advanceTimersByTime(5);
  expect(await read()).toBe('bc');
});

test('a part that comes later than 5 ms after the last one is sent at once', async () => {
  const { part, read } = await aStream();
  await read();
  vi.advanceTimersByTime(6);
  part('b');
  expect(await read()).toBe('b');
});

test('the end is sent at once, with the parts that wait', async () => {
  const { part, end, read } = await aStream();
  await read();
  part('b');
  end();
  expect(await read()).toBe('b>');
});
