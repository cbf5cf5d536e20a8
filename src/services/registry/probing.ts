/**
 * A round of probes takes what is due, fifty at once; what answers is believed at once. When most of a round's
 * routable instances stay silent instead of answering or refusing, the fault is ours and their silence changes
 * nothing.
 */
import { afterSilence } from '../../core/registry/transitions.ts';
import type { InstanceRow } from '../../db/instance/instance.ts';
import { changeSilentInstances, claimDueProbes } from '../../db/instance/instance-probe.ts';
import { examineInstance, type ProbeFinding } from './examine-instance.ts';
import { applyFinding } from './instance-changes.ts';
import type { ProbingTools } from './vetting.ts';

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
