/** Short calls with long loads: many calls for a few models at once, on as many boxes as there are models. */
import { setTimeout as pause } from 'node:timers/promises';
import { request } from '../router/register.ts';
import type { CapstanServer } from '../router/systems.ts';
import { startBoxes } from './boxes.ts';
import { addPipeline, registerBox } from './live.ts';

export interface ShortWork {
  readonly calls: number;
  /** Calls that had to load. */
  readonly loads: number;
  /** From the first call to the end of the last. */
  readonly tookS: number;
}

const models = ['x', 'y', 'z'];
const rounds = 20;
const [workMs, loadMs] = [300, 3_000];

/** @param affinity null: the choice knows nothing of what is loaded */
export async function playShortWork(server: CapstanServer, affinity: string | null): Promise<ShortWork> {
  const name = `short-${affinity === null ? 'blind' : 'resident'}`;
  const boxes = await startBoxes(models.length, [{ name, affinity }]);
  try {
    for (const endpoint of boxes.endpoints.flat()) await registerBox(server, { name, endpoint });
    await addPipeline(server, name);
    const calls = models.length * rounds;
    for (let number = 0; number < calls; number++) {
      const job = { number, model: models[(number * 7) % models.length], workMs, loadMs };
      await request(server, 'POST', '/v1/runs', { pipeline: name, version: '1', job });
    }
    while (boxes.seen.calls.size < calls) await pause(200);
    const seen = [...boxes.seen.calls.values()];
    const endsAtMs = seen.map(({ beganAtMs }) => beganAtMs + workMs);
    const begunAtMs = seen.map(({ beganAtMs, isCold }) => beganAtMs - (isCold ? loadMs : 0));
    const tookS = (Math.max(...endsAtMs) - Math.min(...begunAtMs)) / 1_000;
    return { calls, loads: seen.filter(({ isCold }) => isCold).length, tookS };
  } finally {
    boxes.close();
  }
}
