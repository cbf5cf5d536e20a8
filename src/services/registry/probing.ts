/**
 * Vetting and probing. A round takes what is due, fifty at once; what answers is believed at once. When most of a
 * round's routable instances stay silent instead of answering or refusing, the fault is ours and their silence
 * changes nothing.
 */
import type { Logger } from 'pino';
import type { CapabilityProbe } from '../../clients/capability-probe.ts';
import { afterSilence } from '../../core/registry/transitions.ts';
import type { Db } from '../../db/connect.ts';
import { findInstance, type InstanceRow } from '../../db/instance.ts';
import { changeSilentInstances, claimDueProbes } from '../../db/instance-probe.ts';
import { AppError } from '../../errors.ts';
import { examineInstance, type Finding } from './examine-instance.ts';
import { applyFinding } from './instance-changes.ts';
import { createSchemaCompiler } from './schema-compiler.ts';

export type VetVerdict = 'usable' | 'quarantined' | 'unreachable';

export interface Probing {
  vet(instanceId: string): Promise<VetVerdict>;
  vetInBackground(instanceId: string): void;
  probeDue(limit?: number): Promise<number>;
  close(): Promise<void>;
}

/** A probe reads two answers of at most 5 s each. */
const claimMs = 15_000;
/** More wait for maintenance, which is told by `next_probe_at`. */
const maxInBackground = 50;
const smallestJudgedRound = 5;

export interface ProbingOptions {
  readonly db: Db;
  readonly probe: CapabilityProbe;
  readonly logger: Logger;
}

export const createProbing = ({ db, probe, logger }: ProbingOptions): Probing => {
  const tools = { probe, compiler: createSchemaCompiler() };
  const vetting = new Map<string, Promise<VetVerdict>>();
  const abort = new AbortController();
  const { signal } = abort;

  const vetOnce = async (instanceId: string): Promise<VetVerdict> => {
    const row = await findInstance(db, instanceId);
    if (row === null) throw new AppError('not_found', `no instance ${instanceId} is registered`);
    const finding = await examineInstance(tools, row, { readsSpec: true, signal });
    const state = await applyFinding(db, row, finding, logger);
    return state === 'up' ? 'usable' : state === 'quarantined' ? 'quarantined' : 'unreachable';
  };

  /** One vetting of an instance at a time in this process. */
  const vet = (instanceId: string): Promise<VetVerdict> => {
    const running = vetting.get(instanceId);
    if (running !== undefined) return running;
    const verdict = vetOnce(instanceId).finally(() => vetting.delete(instanceId));
    vetting.set(instanceId, verdict);
    return verdict;
  };

  const probeRow = async (row: InstanceRow): Promise<Silent | null> => {
    const finding = await examineInstance(tools, row, { readsSpec: row.spec_digest === null, signal });
    if (isSilence(finding)) return { row, finding };
    await applyFinding(db, row, finding, logger);
    return null;
  };

  return {
    vet,
    vetInBackground: (instanceId) => {
      if (vetting.size >= maxInBackground) return;
      vet(instanceId).catch((error: unknown) => {
        if (!signal.aborted)
          logger.warn({ error, instance_id: instanceId }, 'vetting failed; it is repeated');
      });
    },
    probeDue: async (limit = 50) => {
      await changeSilentInstances(db, afterSilence);
      const due = await claimDueProbes(db, limit, claimMs);
      const silent = (await Promise.all(due.map(probeRow))).filter((answer) => answer !== null);
      if (isOurFault(due, silent)) {
        logger.warn(
          { probed: due.length, silent: silent.length },
          'most instances are silent: no conclusions',
        );
      } else {
        await Promise.all(silent.map(({ row, finding }) => applyFinding(db, row, finding, logger)));
      }
      return due.length;
    },
    close: async () => {
      abort.abort();
      await Promise.allSettled(vetting.values());
    },
  };
};

interface Silent {
  readonly row: InstanceRow;
  readonly finding: Finding;
}

const isSilence = ({ event }: Finding): boolean =>
  event.kind === 'probe_failed' && (event.failure === 'unanswered' || event.failure === 'unconnected');

/** Instances that are down already are silent for reasons of their own. */
const isOurFault = (due: readonly InstanceRow[], silent: readonly Silent[]): boolean => {
  const isJudged = ({ state }: InstanceRow): boolean => state === 'up' || state === 'suspect';
  const judged = due.filter(isJudged).length;
  return judged >= smallestJudgedRound && silent.filter(({ row }) => isJudged(row)).length * 2 > judged;
};
