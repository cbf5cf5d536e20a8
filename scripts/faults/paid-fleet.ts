/** Paid instances in this process, which no fault of the cluster touches: they count and remember every call. */
import { answer, type Exec, type Instance, startInstance } from '../../test/support/fleet.ts';
import type { Api } from '../package/api.ts';

const shortestMs = 50;
const longestMs = 400;
const callUsd = 0.001;

export interface PaidFleet {
  /** Calls that came, by the key that instances see. */
  readonly calls: () => ReadonlyMap<string, number>;
  readonly stop: () => Promise<void>;
}

/** Adds one, after a while: a run of three gives its number and three. */
function addOne({ input }: Exec, respond: (output: object) => void): void {
  const pause = shortestMs + Math.random() * (longestMs - shortestMs);
  setTimeout(() => respond({ n: Number(input.n) + 1 }), pause);
}

async function startOne(api: Api): Promise<Instance> {
  const number = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
  const instance = await startInstance(api, {
    name: 'paid',
    cost_model: { type: 'per_call', rate_usd: callUsd },
    max_concurrency: 100,
    input: number,
    output: number,
  });
  instance.handle = (exec, response) => addOne(exec, (output) => answer(response, 200, { ok: true, output }));
  return instance;
}

export async function startPaidFleet(api: Api): Promise<PaidFleet> {
  const instances = await Promise.all([startOne(api), startOne(api)]);
  return {
    calls: () => {
      const counts = new Map<string, number>();
      for (const { headers } of instances.flatMap(({ execs }) => execs)) {
        const key = String(headers['idempotency-key']);
        counts.set(key, (counts.get(key) ?? 0) + 1);
      }
      return counts;
    },
    stop: async () => {
      await Promise.all(instances.map((instance) => instance.stop()));
    },
  };
}
