/** Heartbeats of a whole fleet: a failed one is retried soon, by each at another moment. */
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Api } from '../../package/api.ts';
import type { Fleet } from '../fleet.ts';

const patienceMs = 5_000;
const retryMs = 4_000;

export interface Heartbeats {
  /** How many were answered after that moment, Unix time in ms. */
  heardSince(at: number): number;
  /** @returns the states that were reported since the beginning */
  stop(): Promise<ReadonlySet<string>>;
}

export function startHeartbeats(api: Api, { members, capability }: Fleet, pauseMs: number): Heartbeats {
  const heard = new Map<string, number>();
  const states = new Set<string>();
  const over = new AbortController();
  setMaxListeners(2 * members.length + 10, over.signal);
  const rest = (ms: number): Promise<null> => sleep(ms, null, { signal: over.signal }).catch(() => null);
  const beat = async (endpoint: string): Promise<boolean> => {
    const path = `/v1/capabilities/${capability}/heartbeat`;
    const answer = await Promise.race([
      api.request<{ state: string }>('POST', path, { endpoint }).catch(() => null),
      rest(patienceMs),
    ]);
    if (answer?.status !== 200) return false;
    heard.set(endpoint, Date.now());
    states.add(answer.body.state);
    return true;
  };
  const keepOn = async (endpoint: string): Promise<void> => {
    await rest(Math.random() * 1_000);
    while (!over.signal.aborted) {
      const wasHeard = await beat(endpoint);
      await rest(wasHeard ? pauseMs : 500 + Math.random() * retryMs);
    }
  };
  const all = members.map(({ endpoint }) => keepOn(endpoint));
  return {
    heardSince: (at) => [...heard.values()].filter((when) => when > at).length,
    stop: async () => {
      over.abort();
      await Promise.all(all);
      return states;
    },
  };
}
