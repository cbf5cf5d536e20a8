/** How routers choose. Whoever returns null lets the call wait in one line, which is asked again at each release. */
import type { Priority } from '../../src/contracts/primitives.ts';
import { choose } from '../../src/core/routing/choose.ts';
import { priorDuration } from '../../src/core/routing/estimate.ts';
import type { RouteRequest } from '../../src/core/routing/types.ts';
import type { Random } from '../shared/random.ts';
import type { Call, Server } from './fleets.ts';

export interface Policy {
  readonly name: string;
  /** `waiting`: other calls in the one line. */
  create(servers: readonly Server[], random: Random): (call: Call, waiting: number) => Server | null;
}

function busyness({ snapshot, backlog }: Server): number {
  return snapshot.held + backlog.length;
}
function hasRoom({ snapshot }: Server): boolean {
  return snapshot.held < snapshot.max_concurrency;
}

/** The least by the first key, then by the next; among equals one at random. */
function leastOf(
  servers: readonly Server[],
  random: Random,
  ...keys: readonly ((server: Server) => number)[]
): Server | null {
  let tied: Server[] = [];
  for (const server of servers) {
    const [best] = tied;
    const difference =
      best === undefined ? -1 : (keys.map((key) => key(server) - key(best)).find((by) => by !== 0) ?? 0);
    if (difference < 0) tied = [server];
    else if (difference === 0) tied.push(server);
  }
  return tied[random.below(tied.length)] ?? null;
}

function usdOf({ snapshot }: Server): number {
  return snapshot.rate_usd;
}
function meanOf({ meanMs }: Server): number {
  return meanMs;
}

const anywhere: Policy = {
  name: 'random',
  create: (servers, random) => () => servers[random.below(servers.length)] ?? null,
};

const roundRobin: Policy = {
  name: 'round robin',
  create: (servers) => (call) => servers[call.number % servers.length] ?? null,
};

const twoChoices: Policy = {
  name: 'two choices',
  create: (servers, random) => () => {
    const pair = [0, 0].flatMap(() => servers[random.below(servers.length)] ?? []);
    return leastOf(pair, random, busyness);
  },
};

const leastBusy: Policy = {
  name: 'least busy',
  create: (servers, random) => () => leastOf(servers, random, busyness),
};

const lowestCost: Policy = {
  name: 'lowest cost',
  create: (servers, random) => () => leastOf(servers, random, usdOf, busyness),
};

/** Goes on to the next price when the cheaper ones are full. */
const lowestCostWithRoom: Policy = {
  name: 'lowest cost with room',
  create: (servers, random) => () => {
    const free = servers.filter(hasRoom);
    return free.length > 0 ? leastOf(free, random, usdOf) : leastOf(servers, random, busyness, usdOf);
  },
};

/** One line for all: no call waits while anybody is idle. Knows the true speeds. */
function ideal(name: string, key: (server: Server) => number, next: (server: Server) => number): Policy {
  return {
    name,
    create: (servers, random) => () => leastOf(servers.filter(hasRoom), random, key, next),
  };
}

function capstan(priority: Priority): Policy {
  return {
    name: `Capstan, ${priority}`,
    create: (servers) => {
      const snapshots = servers.map(({ snapshot }) => snapshot);
      const byId = new Map(servers.map((server) => [server.snapshot.instance_id, server]));
      const request: RouteRequest = {
        capability: 'work',
        versionRange: null,
        tags: [],
        priority,
        ceilingUsd: null,
        timeoutMs: 300_000,
        headroomUsd: null,
        nowMs: 0,
        priorMs: 0,
        ruledOut: new Map(),
        busy: new Set<string>(),
      };
      return ({ number }, waiting) => {
        const seed = Math.imul(number, 0x9e3779b1);
        const { best } = choose(snapshots, { ...request, priorMs: priorDuration(snapshots), waiting }, seed);
        return best === null || best.isFull ? null : (byId.get(best.instance.instance_id) ?? null);
      };
    },
  };
}

export const policies = {
  random: anywhere,
  roundRobin,
  twoChoices,
  leastBusy,
  lowestCost,
  lowestCostWithRoom,
  batch: capstan('batch'),
  standard: capstan('standard'),
  interactive: capstan('interactive'),
  idealFast: ideal('one line, fastest first', meanOf, usdOf),
  idealCheap: ideal('one line, cheapest first', usdOf, meanOf),
} satisfies Record<string, Policy>;

export type PolicyName = keyof typeof policies;
