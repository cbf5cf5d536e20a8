/** A part of the trace through a real router and its claims, faster than it was, on boxes that load. */
import { setTimeout as pause } from 'node:timers/promises';
import { request } from '../router/register.ts';
import type { CapstanServer } from '../router/systems.ts';
import { createRandom } from '../shared/random.ts';
import { type BoxRequest, startBoxes } from './boxes.ts';
import type { Played, Setting } from './simulate.ts';
import type { Trace } from './trace.ts';

export interface Live extends Omit<Played, 'worstModelS'> {
  /** Calls that found another one on their box. */
  readonly twice: number;
  /** Requests that came back without a slot, and were sent again. */
  readonly again: number;
}

async function register(server: CapstanServer, name: string, endpoints: readonly string[]): Promise<void> {
  for (const endpoint of endpoints) {
    await request(server, 'POST', '/v1/capabilities', {
      name,
      version: '1.0.0',
      endpoint,
      spec_url: `${endpoint}/spec`,
      health_url: `${endpoint}/health`,
      cost_model: { type: 'free', rate_usd: 0 },
      tags: [],
      max_concurrency: 1,
    });
  }
  for (;;) {
    const answer = await request(server, 'GET', `/v1/capabilities/${name}`);
    const { instances } = (await answer.json()) as { instances: { spec_digest: string | null }[] };
    if (instances.every(({ spec_digest }) => spec_digest !== null)) return;
    await pause(100);
  }
}

interface Caller {
  readonly server: CapstanServer;
  readonly name: string;
  /** Counts what was sent again. */
  readonly note: () => void;
}

/** Sends a request until it is answered, as clients do: after the pause that the router asks for. */
async function callUntilDone({ server, name, note }: Caller, input: BoxRequest): Promise<boolean> {
  for (;;) {
    const answer = await fetch(`${server.url}/v1/capabilities/${name}/exec`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ input }),
    });
    const body = (await answer.json()) as { output?: { cold: boolean }; code?: string };
    if (body.output !== undefined) return body.output.cold;
    if (answer.status !== 503) throw new Error(`${answer.status} ${JSON.stringify(body)}`);
    note();
    await pause(1_000 * Number(answer.headers.get('retry-after') ?? 1));
  }
}

/**
 * @param speed how much faster than the trace @param trace the requests of the part
 * @throws the router's answer to a request that it refuses
 */
export async function playLive(
  server: CapstanServer,
  { requests, loads }: Trace,
  { setting, speed }: { readonly setting: Setting; readonly speed: number },
): Promise<Live> {
  const { instances, load, choice, seed } = setting;
  const affinity = choice === 'resident' ? '{{ input.model }}' : null;
  const name = `image-${choice}-${instances}`;
  const boxes = await startBoxes(instances, { name, affinity });
  await register(server, name, boxes.endpoints);
  const { exponential, uniform } = createRandom(seed);
  const meanS = requests.reduce((sum, { workS }) => sum + workS, 0) / requests.length;
  const gapMs = (1_000 * meanS) / (instances * load * speed);
  const waits: number[] = [];
  let again = 0;
  const note = (): void => {
    again += 1;
  };
  let dueMs = performance.now();
  const one = async (model: string, workS: number): Promise<void> => {
    const beganAtMs = performance.now();
    const workMs = (1_000 * workS) / speed;
    const loadMs = (1_000 * (loads[Math.floor(uniform() * loads.length)] as number)) / speed;
    await callUntilDone({ server, name, note }, { model, workMs, loadMs });
    waits.push(((performance.now() - beganAtMs - workMs) * speed) / 1_000);
  };
  const open: Promise<void>[] = [];
  for (const { model, workS } of requests) {
    dueMs += exponential() * gapMs;
    await pause(Math.max(0, dueMs - performance.now()));
    open.push(one(model, workS));
  }
  await Promise.all(open);
  boxes.close();
  const { calls, cold, twice, busyMs } = boxes.seen;
  return { setting, waits, cold: cold / calls, busyS: (busyMs * speed) / 1_000, twice, again };
}
