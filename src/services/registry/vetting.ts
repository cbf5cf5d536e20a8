/** Reads who an instance is, now: after a registration, before its first call, or when somebody asks. */
import type { Logger } from 'pino';
import type { CapabilityProbe } from '../../clients/capability-probe.ts';
import type { Db } from '../../db/connect.ts';
import { findInstance } from '../../db/instance/instance.ts';
import { AppError } from '../../errors/app-error.ts';
import type { SchemaVetter } from '../../schemas/schema-vetter.ts';
import { examineInstance } from './examine-instance.ts';
import { applyFinding } from './instance-changes.ts';

export type VetVerdict = 'usable' | 'quarantined' | 'unreachable';

export interface Vetting {
  /** @throws AppError `not_found` */
  vet(instanceId: string): Promise<VetVerdict>;
  vetInBackground(instanceId: string): void;
  /** Resolves when no vetting is under way any more. */
  settle(): Promise<void>;
}

export interface ProbingTools {
  readonly db: Db;
  readonly probe: CapabilityProbe;
  readonly vetter: SchemaVetter;
  readonly logger: Logger;
  /** Ends all probes. */
  readonly signal: AbortSignal;
}

/** More wait for maintenance, which is told by `next_probe_at`. */
const maxInBackground = 50;
/** A newer registration or heartbeat makes a finding old news; then it is looked at again. */
const maxLooks = 3;

export function createVetting(tools: ProbingTools): Vetting {
  const { logger, signal } = tools;
  const running = new Map<string, Promise<VetVerdict>>();

  /** One vetting of an instance at a time in this process. */
  const vet = (instanceId: string): Promise<VetVerdict> => {
    const known = running.get(instanceId);
    if (known !== undefined) return known;
    const verdict = vetNow(tools, instanceId).finally(() => running.delete(instanceId));
    running.set(instanceId, verdict);
    return verdict;
  };

  return {
    vet,
    vetInBackground: (instanceId) => {
      if (running.size >= maxInBackground) return;
      vet(instanceId).catch((error: unknown) => {
        if (signal.aborted) return;
        logger.warn({ err: error, instance_id: instanceId }, 'vetting failed; it is repeated');
      });
    },
    settle: async () => {
      await Promise.allSettled(running.values());
    },
  };
}

async function vetNow(tools: ProbingTools, instanceId: string): Promise<VetVerdict> {
  for (let look = 1; look <= maxLooks; look++) {
    const row = await findInstance(tools.db, instanceId);
    if (row === null) throw new AppError('not_found', `no instance ${instanceId} is registered`);
    const finding = await examineInstance(tools, row, { readsSpec: true, signal: tools.signal });
    const state = await applyFinding(tools.db, row, finding, tools.logger);
    if (state !== null) return verdictOf(state);
  }
  return 'unreachable';
}

function verdictOf(state: string): VetVerdict {
  return state === 'up' ? 'usable' : state === 'quarantined' ? 'quarantined' : 'unreachable';
}
