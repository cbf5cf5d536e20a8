/**
 * Calls that arrive at random over a virtual clock and wait for instances. The same seed gives every policy the
 * same arrivals and the same work.
 */

import { createRandom } from '../shared/random.ts';
import { createEventQueue } from './event-queue.ts';
import { type Call, capacityOf, costOf, createServers, type Fleet, type Server } from './fleets.ts';
import type { Policy } from './policies.ts';

export interface Outcome {
  /** Milliseconds from arrival to the start of the call. */
  readonly waits: readonly number[];
  /** Paid in all, and calls that were free. */
  readonly usd: number;
  readonly free: number;
  /** Calls that still waited when the last one came: grows without end under a policy that cannot keep up. */
  readonly left: number;
}

export interface Experiment {
  readonly fleet: Fleet;
  readonly load: number;
  readonly seed: number;
  readonly calls: number;
}

/** Arrivals before that share of all are not counted: queues begin empty and speeds unknown. */
const warmUpShare = 0.1;

const alpha = 0.2;
const countDecay = 0.98;

/** What the router learns from a call that succeeded. */
function learn({ snapshot }: Server, durationMs: number): void {
  const { duration_ms, deviation_ms } = snapshot;
  const distance = Math.abs(durationMs - (duration_ms ?? durationMs));
  snapshot.duration_ms = duration_ms === null ? durationMs : duration_ms + alpha * (durationMs - duration_ms);
  snapshot.deviation_ms = deviation_ms === null ? distance : deviation_ms + alpha * (distance - deviation_ms);
  snapshot.success_count = snapshot.success_count * countDecay + 1;
}

interface Ending {
  readonly server: Server;
  readonly durationMs: number;
}

function drawCalls({ fleet, load, seed, calls }: Experiment): Call[] {
  const random = createRandom(seed);
  const betweenMs = 1 / (load * capacityOf(fleet));
  let atMs = 0;
  return Array.from({ length: calls }, (_, number) => {
    atMs += random.exponential() * betweenMs;
    return { number, atMs, work: random[fleet.work]() };
  });
}

export function simulate(experiment: Experiment, policy: Policy): Outcome {
  const servers = createServers(experiment.fleet);
  const pick = policy.create(servers, createRandom(experiment.seed + 1));
  const endings = createEventQueue<Ending>();
  const line: Call[] = [];
  const counted = experiment.calls * warmUpShare;
  const waits: number[] = [];
  let [usd, free, nowMs, inLine] = [0, 0, 0, 0];

  const start = (server: Server, call: Call): void => {
    server.snapshot.held++;
    const durationMs = call.work * server.meanMs;
    endings.push(nowMs + durationMs, { server, durationMs });
    if (call.number < counted) return;
    waits.push(nowMs - call.atMs);
    usd += costOf(server, durationMs);
    if (server.snapshot.rate_usd === 0) free++;
  };

  const arrive = (call: Call): void => {
    const server = pick(call, line.length - inLine);
    if (server === null) line.push(call);
    else if (server.snapshot.held < server.snapshot.max_concurrency) start(server, call);
    else server.backlog.push(call);
  };

  const serveLine = (): void => {
    for (let next = line[inLine]; next !== undefined; next = line[inLine]) {
      const server = pick(next, line.length - inLine - 1);
      if (server === null) return;
      inLine++;
      start(server, next);
    }
  };

  const end = ({ server, durationMs }: Ending): void => {
    server.snapshot.held--;
    learn(server, durationMs);
    const next = server.backlog.shift();
    if (next === undefined) serveLine();
    else start(server, next);
  };

  const endUntil = (atMs: number): void => {
    while (endings.nextAt() <= atMs) {
      nowMs = endings.nextAt();
      end(endings.pop());
    }
    nowMs = atMs;
  };

  for (const call of drawCalls(experiment)) {
    endUntil(call.atMs);
    arrive(call);
  }
  const left = line.length - inLine + servers.reduce((sum, { backlog }) => sum + backlog.length, 0);
  endUntil(Number.MAX_VALUE);
  return { waits, usd, free, left };
}
