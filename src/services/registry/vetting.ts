/**
 * When instances are asked who they are: now, after a registration, before a first call or when somebody asks; and
 * in rounds.
 *
 * A round of probes takes the instances that are due, fifty at once; an answer is believed at once. When most of a
 * round's routable instances stay silent instead of answering or refusing, the fault is ours and their silence
 * changes nothing.
 */
import type { Logger } from 'pino';
import type { CapabilityProbe } from '../../clients/capability-probe.ts';
import { afterSilence } from '../../core/instance-states.ts';
import { joinFlight } from '../../core/pacing.ts';
import type { Db } from '../../db/connect.ts';
import {
  changeSilentInstances,
  claimDueProbes,
  findInstance,
  type InstanceRow,
} from '../../db/instance/instance.ts';
import { AppError } from '../../errors/app-error.ts';
import type { SchemaVetter } from '../../schemas/schema-vetter.ts';
import { applyFinding, examineInstance, type ProbeFinding } from './examination.ts';

export type VetVerdict = 'usable' | 'quarantined' | 'unreachable';

interface Vetting {
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
  const vet = (instanceId: string): Promise<VetVerdict> =>
    joinFlight(running, instanceId, () => vetNow(tools, instanceId));

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

/** A probe reads two answers of at most 5 s each. */
const claimMs = 15_000;
const smallestJudgedRound = 5;

interface Silent {
  readonly row: InstanceRow;
  readonly finding: ProbeFinding;
}

/** @returns how many instances were probed */
export async function probeDueInstances(tools: ProbingTools, limit: number): Promise<number> {
  const { db, logger } = tools;
  await changeSilentInstances(db, afterSilence);
  const due = await claimDueProbes(db, limit, claimMs);
  const silent = (await Promise.all(due.map((row) => probeInstance(tools, row)))).filter(
    (answer) => answer !== null,
  );
  if (isOurFault(due, silent)) {
    logger.warn({ probed: due.length, silent: silent.length }, 'most instances are silent: no conclusions');
  } else {
    await Promise.all(silent.map(({ row, finding }) => applyFinding(db, row, finding, logger)));
  }
  return due.length;
}

/** Null when the finding was applied. */
async function probeInstance(tools: ProbingTools, row: InstanceRow): Promise<Silent | null> {
  const readsSpec = row.spec_digest === null;
  const finding = await examineInstance(tools, row, { readsSpec, signal: tools.signal });
  if (isSilence(finding)) return { row, finding };
  await applyFinding(tools.db, row, finding, tools.logger);
  return null;
}

function isSilence({ event }: ProbeFinding): boolean {
  return event.kind === 'probe_failed' && (event.failure === 'unanswered' || event.failure === 'unconnected');
}

/** Instances that are down already are silent for reasons of their own. */
function isOurFault(due: readonly InstanceRow[], silent: readonly Silent[]): boolean {
  const isJudged = ({ state }: InstanceRow): boolean => state === 'up' || state === 'suspect';
  const judged = due.filter(isJudged).length;
  return judged >= smallestJudgedRound && silent.filter(({ row }) => isJudged(row)).length * 2 > judged;
}
