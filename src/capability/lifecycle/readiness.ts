/** Step 5 of the bootstrap: `GET /health` on this machine, up to 10 times, 1 second apart, the first at once. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describeFault } from './router-client.ts';

const readinessAttempts = 10;
const readinessIntervalMs = 1_000;

const shownCharacters = 200;

/** @returns what was answered instead of status ok; null when it is healthy */
async function findFault(healthUrl: string, timeoutMs: number): Promise<string | null> {
  try {
    const response = await fetch(healthUrl, { signal: AbortSignal.timeout(timeoutMs) });
    const text = await response.text();
    if (response.ok && isHealthy(text)) return null;
    return `answered with HTTP ${response.status} ${text.slice(0, shownCharacters).trim()}`.trimEnd();
  } catch (error) {
    return `not answered: ${describeFault(error)}`;
  }
}

function isHealthy(text: string): boolean {
  try {
    const health: unknown = JSON.parse(text);
    return typeof health === 'object' && Reflect.get(health ?? {}, 'status') === 'ok';
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
  let fault: string | null = null;
  for (let attempt = 1; attempt <= readinessAttempts; attempt += 1) {
    const started = Date.now();
    fault = await findFault(healthUrl, intervalMs);
    if (fault === null) return attempt;
    if (attempt < readinessAttempts) await sleep(Math.max(0, intervalMs - (Date.now() - started)));
  }
  const seen = `the last one was ${fault}`;
  throw new Error(
    `GET ${healthUrl} was not answered with status ok in ${readinessAttempts} attempts; ${seen}`,
  );
}
