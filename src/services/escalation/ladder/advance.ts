/**
 * One transition of a ladder: do what the row says is to be done now, outside of a transaction, and store what came of
 * it. A transition that was stored already, or that somebody else stores first, answers where the ladder stands; so a
 * worker that is killed at any point repeats it and nothing happens twice; and whoever repeats it waits for the call of
 * a worker that lives.
 */
import type { CancelSignal } from '../../../core/cancellation.ts';
import { makeTransition, transientDelayMs } from '../../../core/ladder/drive.ts';
import { type EscalationRow, readEscalation } from '../../../db/escalation/escalation.ts';
import { readUnixTime } from '../../../db/escalation/escalation-transition.ts';
import { AppError } from '../../../errors/app-error.ts';
import { createLadderPorts, type TransitionDependencies } from './ladder-ports.ts';
import { type Advanced, readPosition } from './ladder-position.ts';
import { withinStep } from './observe-ladder.ts';
import { MoneyCame, storeProgress } from './store-progress.ts';
import { readLadder } from './stored-ladder.ts';
import { waitForMaker } from './wait-for-maker.ts';

export interface AdvanceRequest {
  readonly escalation_id: string;
  /** That is to be made: how many were stored before it. */
  readonly transition: number;
  readonly signal: CancelSignal;
  /** It was given to somebody before, who may still be at it. */
  readonly again?: boolean;
}

/** The limit was raised while a call was refused: the same transition again after this. */
const moneyCameMs = 500;

/** @throws AppError `not_found` */
export async function requireEscalation(
  { db }: Pick<TransitionDependencies, 'db'>,
  escalationId: string,
): Promise<EscalationRow> {
  const row = await readEscalation(db, escalationId);
  if (row === undefined) throw new AppError('not_found', `there is no escalation ${escalationId}`);
  return row;
}

export async function advance(
  dependencies: TransitionDependencies,
  { escalation_id, transition, signal, again = false }: AdvanceRequest,
): Promise<Advanced> {
  const { db } = dependencies;
  let row = await requireEscalation(dependencies, escalation_id);
  if (again && row.transition === transition && row.state === 'running') {
    await waitForMaker(db, row, signal);
    row = await requireEscalation(dependencies, escalation_id);
  }
  if (row.transition !== transition || row.state !== 'running') return readPosition(db, row);
  const source = { row, ladder: readLadder(row), now: await readUnixTime(db), signal };
  const { ports, readTask } = createLadderPorts(dependencies, source);
  const made = await withinStep(dependencies, row, () => makeTransition(ports, source.ladder));
  if ('delay_ms' in made) return { ...(await readPosition(db, row)), ...made };
  const task = readTask();
  const { signals, spec } = task ?? { signals: row.signals, spec: null };
  try {
    await storeProgress(dependencies, row, { ...made, signals, spec });
  } catch (fault) {
    if (!(fault instanceof MoneyCame)) throw fault;
    return { ...(await readPosition(db, row)), delay_ms: moneyCameMs };
  }
  const position = await readPosition(db, await requireEscalation(dependencies, escalation_id));
  const delay_ms = transientDelayMs(made.next, Math.random());
  return delay_ms === 0 ? position : { ...position, delay_ms };
}
