/**
 * The last step of an instance: it keeps serving until the router knows, then finishes its calls, or aborts them
 * after a grace, and closes.
 */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { InstanceServer } from '../http-server.ts';

/** Time for open calls to end by themselves, then for aborted ones to clean up. */
export const graceMs = 10_000;
const cleanUpMs = 2_000;

export async function stopServer(server: InstanceServer, limitMs: number = graceMs): Promise<void> {
  const closed = once(server.http, 'close').then(() => true);
  server.close();
  const within = (ms: number): Promise<boolean> => {
    const waiting = new AbortController();
    const late = sleep(ms, false, { signal: waiting.signal }).catch(() => false);
    return Promise.race([closed, late]).finally(() => waiting.abort());
  };
  if (await within(limitMs)) return;
  server.abortCalls();
  if (await within(cleanUpMs)) return;
  server.http.closeAllConnections();
}
