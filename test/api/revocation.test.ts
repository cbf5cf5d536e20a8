import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { watchRevocations } from '../../src/api/revocation.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function aResponse(): ServerResponse {
  return new ServerResponse(new IncomingMessage(new Socket()));
}

test('what a key has open is cut within 5 s of its revocation, and what others have open is not', async () => {
  const [theirs, others] = [aResponse(), aResponse()];
  const open = new Map([
    [theirs, { key: 'revoked' }],
    [others, { key: 'valid' }],
  ]);
  const revoked = new Set<string>();
  const closing = new AbortController();
  const isValid = async (key: string): Promise<boolean> => !revoked.has(key);
  watchRevocations({ open, closing: closing.signal }, { isValid });
  await vi.advanceTimersByTimeAsync(61_000);
  expect([theirs.destroyed, others.destroyed]).toEqual([false, false]);
  revoked.add('revoked');
  await vi.advanceTimersByTimeAsync(5_000);
  expect([theirs.destroyed, others.destroyed]).toEqual([true, false]);
});
