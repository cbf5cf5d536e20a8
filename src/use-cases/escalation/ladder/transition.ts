/**
 * Makes one transition of a ladder: executes the command in the row, outside of a transaction, and stores the result.
 * If the transition is stored already, also by another worker, the current position is returned. So a worker that is
 * killed at any point can repeat it and nothing happens twice. A repetition waits for the call of a live worker.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { type CancelSignal, toAbortSignal } from '@capstan/core/cancellation';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { type LadderPorts, makeTransition, transientDelayMs } from '@capstan/core/ladder/drive';
import type { Ladder } from '@capstan/core/ladder/ladder';
import type { AdviseCommand } from '@capstan/core/ladder/types';
import { fromNanoUsd, toNanoUsd } from '@capstan/core/money/nano-usd';
import { joinFlight } from '@capstan/core/pacing';
import type { Advanced } from '@capstan/core/workflow-payloads';
import type { WorkerCtx } from '../../../context.ts';
import { callKeyOf, isHeld } from '../../../db/attempt/attempt.ts';
import type { Db } from '../../../db/connect.ts';
import type { EscalationRow } from '../../../db/escalation/escalation.ts';
import { readUnixTime } from '../../../db/escalation/escalation-transition.ts';
import { readPause } from '../../../db/run/run-control.ts';
import { listTransitionRevisions } from '../../../db/step/step-revision.ts';
import { correctionPortsOf, executeJob, type LadderJob } from '../levels/execution.ts';
import { askAdvisor, type ModelCall } from '../levels/model-question.ts';
import { given, shortenError, showAdvice, showHistory } from '../prompts.ts';
import { type EscalatedTask, readStepTask } from './escalated-task.ts';
import { consultOthers } from './learning.ts';
import { MoneyCame, storeProgress, withinStep } from './progress.ts';
import {
  callerOf,
  fingerprintOf,
  readLadder,
  readPosition,
  requireEscalation,
  stepOf,
} from './stored-ladder.ts';

interface AdvisedLadder {
  readonly row: EscalationRow;
  readonly ladder: Ladder;
  /** Null for a job without a step. */
  readonly task: EscalatedTask | null;
}

/** Shows an advisor the ladder, whose last execution failed. */
function showProblem({ row, ladder, task }: AdvisedLadder, { error, malformed }: AdviseCommand): JsonObject {
  return {
    job_type: row.job_type,
    error: shortenError(error),
    ...given('prompt', task === null ? row.prompt : null),
    ...given('context', task === null && row.has_context ? row.context : null),
    ...given('repo_context', row.repo_context),
    ...given('input', task?.current),
    ...given('schema', task?.spec?.schema),
    history: showHistory(ladder.history),
    advice: showAdvice(ladder.advice),
    ...given('invalid_answer', malformed === null ? null : shortenError(malformed)),
  };
}

// The ports of one transition of a stored ladder: its row, its step's inputs, the routed calls of its models.

/** The row whose transition is made. */
interface TransitionSource {
  readonly row: EscalationRow;
  readonly ladder: Ladder;
  /** Unix seconds. */
  readonly now: number;
  readonly signal: CancelSignal;
}

interface StoredLadderPorts {
  readonly ports: LadderPorts;
  /** The step's task as the transition has read it; null when it did not, and for a job without a step. */
  readTask(): EscalatedTask | null;
}

function ladderPortsOf(ctx: WorkerCtx, { row, ladder, now, signal }: TransitionSource): StoredLadderPorts {
  const call: ModelCall = { ...callOf(row, ladder, signal), isHeld: () => isPaused(ctx.db, row) };
  let known: EscalatedTask | null = null;
  const readTask = async (): Promise<EscalatedTask> => {
    known ??= await readStepTask(ctx, row);
    return known;
  };
  const isStep = stepOf(row) !== null;
  const ports: LadderPorts = {
    now,
    fingerprintOf,
    work: isStep
      ? {
          kind: 'step',
          correction: async () => {
            const task = await readTask();
            return correctionPortsOf(ctx, task, { ...call, priority: task.priority });
          },
        }
      : { kind: 'job', execute: (level) => executeJob(ctx, toJob(row, ladder), { level, call }) },
    consultOthers: async () => {
      const signals = isStep ? (await readTask()).signals : row.signals;
      return consultOthers(ctx, { row, ladder, now, signals });
    },
    advise: async (command) => {
      const task = isStep ? await readTask() : null;
      const facts = showProblem({ row, ladder, task }, command);
      const asked = task === null ? call : { ...call, priority: task.priority };
      return askAdvisor(ctx, asked, { level: command.from_level, facts });
    },
  };
  return { ports, readTask: () => known };
}

/** The key of the model calls in the transition of this row. */
function modelKeyOf({ escalation_id, transition }: EscalationRow): string {
  return `${escalation_id}.${transition}`;
}

function callOf(row: EscalationRow, { command }: Ladder, signal: CancelSignal): ModelCall {
  return {
    projectId: row.project_id,
    caller: callerOf(row),
    key: modelKeyOf(row),
    leftUsd: leftOf(row),
    round: 'transients' in command ? command.transients + 1 : 1,
    signal,
  };
}

function leftOf({ max_usd, cost_nano, reserved_nano }: EscalationRow): number | null {
  if (max_usd === null) return null;
  const left = toNanoUsd(Number(max_usd)) - BigInt(cost_nano) - BigInt(reserved_nano);
  return fromNanoUsd(left > 0n ? left : 0n);
}

function toJob(row: EscalationRow, { history, advice, command }: Ladder): LadderJob {
  return {
    project_id: row.project_id,
    job_type: row.job_type,
    prompt: row.prompt,
    signals: row.signals,
    repo_context: row.repo_context,
    result_schema: row.result_schema,
    history,
    advice,
    context: row.has_context ? row.context : undefined,
    malformed: 'malformed' in command ? command.malformed : null,
  };
}

// When Temporal dispatches a transition again after missing heartbeats, the first attempt may still be in flight, with
// a paid call of its model or step. The leases in the database decide it.

const pauseMs = 250;
/** Between the call of a model and that of its step no worker holds a lease, so two looks in turn have to agree. */
const looksInTurn = 2;

/** Resolves when no worker makes the transition of this row, or `signal` aborts. */
async function waitForMaker(db: Db, row: EscalationRow, signal: CancelSignal): Promise<void> {
  for (let free = 0; free < looksInTurn && !signal.aborted; ) {
    free = (await isHeld(db, await listCallKeys(db, row))) ? 0 : free + 1;
    if (free < looksInTurn)
      await pause(pauseMs, undefined, { signal: toAbortSignal(signal) }).catch(() => undefined);
  }
}

/** Lists the keys of the calls of a transition: its model's, and its step's with each input that it has stored. */
async function listCallKeys(db: Db, row: EscalationRow): Promise<readonly string[]> {
  const step = stepOf(row);
  if (step === null) return [modelKeyOf(row)];
  const stored = await listTransitionRevisions(db, row.escalation_id, row.transition);
  const revisions = [0, ...stored.map(({ revision }) => revision)];
  return [modelKeyOf(row), ...revisions.map((revision) => callKeyOf({ ...step, revision }))];
}

/** A ladder of a paused run makes no transition, and begins no call within one. */
async function isPaused(db: Db, { run_id }: EscalationRow): Promise<boolean> {
  return run_id !== null && (await readPause(db, run_id)).is_paused;
}

export interface AdvanceRequest {
  readonly escalation_id: string;
  /** The expected transition: the number of stored ones before it. */
  readonly transition: number;
  readonly signal: CancelSignal;
  /** An earlier attempt of a worker may still be in flight. */
  readonly again?: boolean;
}

/** The limit was raised while a call was refused: the transition is repeated after this. */
const moneyCameMs = 500;

/** Makes one transition; repeated, it returns the current position. @throws AppError `not_found` */
export function advanceLadder(ctx: WorkerCtx, request: AdvanceRequest): Promise<Advanced> {
  const key = `${request.escalation_id}.${request.transition}`;
  return joinFlight(ctx.transitions, key, () => advance(ctx, request));
}

async function advance(
  ctx: WorkerCtx,
  { escalation_id, transition, signal, again = false }: AdvanceRequest,
): Promise<Advanced> {
  const { db } = ctx;
  let row = await requireEscalation(db, escalation_id);
  if (again && row.transition === transition && row.state === 'running') {
    await waitForMaker(db, row, signal);
    row = await requireEscalation(db, escalation_id);
  }
  if (row.transition !== transition || row.state !== 'running') return readPosition(db, row);
  if (await isPaused(db, row)) return { ...(await readPosition(db, row)), is_held: true };
  const source = { row, ladder: readLadder(row), now: await readUnixTime(db), signal };
  const { ports, readTask } = ladderPortsOf(ctx, source);
  const made = await withinStep(ctx, row, () => makeTransition(ports, source.ladder));
  if (!('next' in made)) return { ...(await readPosition(db, row)), ...made };
  const task = readTask();
  const { signals, spec } = task ?? { signals: row.signals, spec: null };
  try {
    await storeProgress(ctx, row, { ...made, signals, spec });
  } catch (fault) {
    if (!(fault instanceof MoneyCame)) throw fault;
    return { ...(await readPosition(db, row)), delay_ms: moneyCameMs };
  }
  const position = await readPosition(db, await requireEscalation(db, escalation_id));
  const delay_ms = transientDelayMs(made.next, Math.random());
  return delay_ms === 0 ? position : { ...position, delay_ms };
}
