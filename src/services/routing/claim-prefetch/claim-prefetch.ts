/**
 * Claims made ahead for short direct calls that come one after the other: who calls again within 50 ms is likely to call
 * once more, so some claims for calls like it are made while nobody waits for them, several by one statement, and the
 * next call waits for no database. They are claims like any other, durable where they hold money, and given back when no
 * call takes them within 50 ms. None is made where it could stand in somebody's way: on an instance that is half full,
 * of money that is short, or while several calls are under way, whose claims go together anyway.
 *
 * It is fenced: without this folder, `is_prefetch` of a claim and the function is_tight all works the same, and a lone
 * caller waits for one more statement (`npm run bench:router`, p50 of one caller).
 */
import type { SchemaValidator } from '../../registry/schema-validator.ts';
import type { FleetPoller } from '../fleet/fleet-poller.ts';
import type { CallRequest, Claimed } from '../routed-call.ts';
import { type CallOfStream, CallStream, mostOpen, type StreamPorts } from './call-stream.ts';

export interface ClaimPrefetch {
  /** Null for a call that somebody may ask for again, or when enough calls are under way. */
  enter(request: CallRequest): CallOfStream | null;
  /** Makes no more, and gives back what nobody has taken. Resolves when none is under way. */
  close(): Promise<void>;
}

export interface ClaimPrefetchDependencies extends Omit<StreamPorts, 'isUsable'> {
  readonly fleet: Pick<FleetPoller, 'find'>;
  readonly validator: Pick<SchemaValidator, 'validateInput'>;
}

const mostStreams = 256;
const sweepMs = 25;

function isRepeatable({ isKeyNew, step, isAtMostOnce }: CallRequest): boolean {
  return !isKeyNew || step !== null || isAtMostOnce;
}

export function createClaimPrefetch(dependencies: ClaimPrefetchDependencies): ClaimPrefetch {
  const streams = new Map<string, CallStream>();
  const traffic = { open: 0, isClosed: false };
  let timer: NodeJS.Timeout | null = null;
  const ports: StreamPorts = {
    ...dependencies,
    isUsable: (claimed, request) => isUsable(dependencies, claimed, request),
  };

  const sweep = (): void => {
    for (const [name, stream] of streams) {
      if (!stream.isIdle) continue;
      stream.empty();
      if (stream.isQuiet) streams.delete(name);
    }
    timer = streams.size === 0 ? null : setTimeout(sweep, sweepMs).unref();
  };

  const open = (name: string): CallStream => {
    const stream = new CallStream(ports, traffic);
    streams.set(name, stream);
    timer ??= setTimeout(sweep, sweepMs).unref();
    return stream;
  };

  return {
    enter: (request) => {
      if (isRepeatable(request) || traffic.isClosed || traffic.open >= mostOpen) return null;
      const name = `${request.projectId} ${JSON.stringify(request.route)}`;
      const stream = streams.get(name) ?? (streams.size < mostStreams ? open(name) : null);
      return stream?.join(request) ?? null;
    },
    close: async () => {
      traffic.isClosed = true;
      if (timer !== null) clearTimeout(timer);
      for (const stream of streams.values()) stream.empty();
      await Promise.all([...streams.values()].map((stream) => stream.made()));
    },
  };
}

/** What was known when it was claimed may have changed since. */
async function isUsable(
  { fleet, validator }: Pick<ClaimPrefetchDependencies, 'fleet' | 'validator'>,
  { instance }: Claimed,
  { input }: CallRequest,
): Promise<boolean> {
  const now = fleet.find(instance.instance_id);
  if (now === undefined || now.state !== 'up' || now.breaker_until_ms !== null) return false;
  const { spec_digest } = now;
  if (spec_digest === null || spec_digest !== instance.spec_digest) return false;
  return (await validator.validateInput(spec_digest, input)).ok;
}
