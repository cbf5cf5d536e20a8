/** Step 5 of the bootstrap: `GET /health` on this machine, up to 10 times, 1 second apart, the first at once. */
import { setTimeout as sleep } from 'node:timers/promises';

const readinessAttempts = 10;
const readinessIntervalMs = 1_000;

async function isHealthy(healthUrl: string, timeoutMs: number): Promise<boolean> {
  try {
    const response = await fetch(healthUrl, { signal: AbortSignal.timeout(timeoutMs) });
    const health: unknown = await response.json();
    return response.ok && typeof health === 'object' && Reflect.get(health ?? {}, 'status') === 'ok';
  } catch {
    return false;
  }
}

/**
 * @returns how many attempts it took
 * @throws Error when none of them was answered with status ok
 */
export async function waitUntilReady(
  healthUrl: string,
  intervalMs: number = readinessIntervalMs,
): Promise<number> {
  for (let attempt = 1; attempt <= readinessAttempts; attempt += 1) {
    const started = Date.now();
    if (await isHealthy(healthUrl, intervalMs)) return attempt;
    if (attempt < readinessAttempts) await sleep(Math.max(0, intervalMs - (Date.now() - started)));
  }
  throw new Error(`GET ${healthUrl} was not answered with status ok in ${readinessAttempts} attempts`);
}
