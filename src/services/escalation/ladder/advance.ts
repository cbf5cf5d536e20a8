/**
 * One transition of a ladder: do what the row says is to be done now, outside of a transaction, and store what came of
 * it. A transition that was stored already, or that somebody else stores first, answers where the ladder stands; so a
 * worker that is killed at any point repeats it and nothing happens twice.
 */
import { backoffMs, defaultRetry } from '../../../core/call/retry-policy.ts';
import type { CancelSignal } from '../../../core/cancellation.ts';
import { type EscalationRow, readEscalation } from '../../../db/escalation/escalation.ts';
import { readUnixTime } from '../../../db/escalation/escalation-transition.ts';
import { AppError } from '../../../errors/app-error.ts';
import { advise } from '../levels/advise.ts';
import { executeLevel } from '../levels/execute-level.ts';
import { type Advanced, readPlace } from './ladder-position.ts';
import { runDecided } from './run-decided.ts';
import { storeProgress } from './store-progress.ts';
import { readLadder, type StoredLadder } from './stored-ladder.ts';
import { type AdvanceDependencies, callOf, type Turn, type Work } from './transition.ts';

export interface AdvanceRequest {
  readonly escalation_id: string;
  /** That is to be made: how many were stored before it. */
  readonly transition: number;
  readonly signal: CancelSignal;
}

/** @throws AppError `not_found` */
export async function requireEscalation(
  { db }: Pick<AdvanceDependencies, 'db'>,
  escalationId: string,
): Promise<EscalationRow> {
  const row = await readEscalation(db, escalationId);
  if (row === undefined) throw new AppError('not_found', `there is no escalation ${escalationId}`);
  return row;
}

export async function advance(
  dependencies: AdvanceDependencies,
  { escalation_id, transition, signal }: AdvanceRequest,
): Promise<Advanced> {
  const { db } = dependencies;
  const row = await requireEscalation(dependencies, escalation_id);
  if (row.transition !== transition || row.state !== 'running') return readPlace(db, row);
  const ladder = readLadder(row);
  const turn: Turn = { row, ladder, call: callOf(row, ladder, signal), now: await readUnixTime(db) };
  const work = await makeTurn(dependencies, turn);
  if (typeof work === 'number') return { ...(await readPlace(db, row)), delay_ms: work };
  await storeProgress(dependencies, row, work);
  const place = await readPlace(db, await requireEscalation(dependencies, escalation_id));
  return { ...place, ...delayOf(work.next) };
}

function makeTurn(dependencies: AdvanceDependencies, turn: Turn): Promise<Work> {
  const { command, decided } = turn.ladder;
  if (decided !== null) return runDecided(dependencies, turn, decided);
  return command.type === 'advise' ? advise(dependencies, turn, command) : executeLevel(dependencies, turn);
}

/** The same level again after a transient failure: by the retry table. */
function delayOf({ command }: StoredLadder): { readonly delay_ms?: number } {
  return (command.type === 'execute' || command.type === 'advise') && command.transients > 0
    ? { delay_ms: backoffMs(defaultRetry, command.transients, Math.random()) }
    : {};
}
