import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { LiveList } from '@capstan/core/live-list';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { watchRevocations } from '../../src/api/authentication.ts';
import type { OpenRequest, RequestState } from '../../src/api/middleware.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function aResponse(): ServerResponse {
  return new ServerResponse(new IncomingMessage(new Socket()));
}

test('streams of a revoked key are cut within 5 s, those of others are not', async () => {
  const [theirs, others] = [aResponse(), aResponse()];
  const open = new LiveList<OpenRequest>();
  open.add({ res: theirs, state: { key: 'revoked' } as RequestState });
  open.add({ res: others, state: { key: 'valid' } as RequestState });
  const revoked = new Set<string>();
  const closing = new AbortController();
  let looks = 0;
  const isValid = async (key: string): Promise<boolean> => {
    looks += 1;
    return !revoked.has(key);
  };
  watchRevocations({ open, closing: closing.signal }, isValid);
  while (looks < 2) await vi.advanceTimersByTimeAsync(1);
  expect([theirs.destroyed, others.destroyed]).toEqual([false, false]);
  revoked.add('revoked'); // just after a look
  await vi.advanceTimersByTimeAsync(5_000);
  expect([theirs.destroyed, others.destroyed]).toEqual([true, false]);
});
