/**
 * One transition of a ladder, as the services and `capstan run --mock` make it. The ports do what the machine asks for.
 * The result is the next state, its meaning for the caller, and a line for the log. Nothing is stored here. Besides L1
 * to L8 of the machine:
 *
 * L9 Before its first advice, a ladder restarts once to use what another ladder has learnt. L10 A transition that is
 * repeated because its worker died reuses its earlier corrections under the same choice. L11 An input that has failed
 * is not executed again, unless a person decides so. L12 A person's input is executed before anything else; if it
 * fails, a review is opened again. An input that only the budget prevented from running is executed when there is
 * budget. L13 A correction whose call waits in line for a free slot is repeated when it is called, and then sent
 * unchanged. If no slot comes within the step's `queue_timeout`, the step fails, as with its own call.
 */

import { backoffMs, defaultRetry } from '../call/retry.ts';
import type { Failure, Json, JsonObject } from '../contracts/primitives.ts';
import { type FailureClass, refusalOf } from './classify-failure.ts';
import {
  type CorrectionPorts,
  type ExecutionDelay,
  type ExecutionEnd,
  endExecution,
  executeCorrection,
  executeDecided,
  type Interruption,
  interruptionMs,
  type LevelExecution,
  toLadderEvent,
} from './execute-correction.ts';
import {
  applyEvent,
  type DecidedInput,
  type ErrorContext,
  failedAt,
  type Ladder,
  restartLadder,
} from './ladder.ts';
import { humanLevel, labelOf } from './levels.ts';
import { createAttempt, stopForMoney } from './machine.ts';
import type { AdviseCommand, ExecuteCommand, LadderEvent, Lesson, StopReason } from './types.ts';

/** The end of a request for advice from a level's model. */
export type AdviceEnd =
  | GivenAdvice
  | { readonly kind: 'failed'; readonly class: FailureClass; readonly error: Failure }
  | { readonly kind: 'unavailable' }
  | Interruption;

export interface GivenAdvice {
  readonly kind: 'advised';
  readonly instructions: string;
  readonly reasoning: string;
  /** 1 to 5: level 0 has no model to read it. */
  readonly suggested_executor_level: number;
}

export interface LadderPorts extends ErrorContext {
  readonly work:
    | { readonly kind: 'job'; execute(level: number): Promise<LevelExecution> }
    | { readonly kind: 'step'; correction(): Promise<CorrectionPorts> };
  /**
   * Called before advice. Returns the delay until it checks again whether an earlier ladder with the same failure has
   * finished, or the level that can now use what was learnt; null = ask for advice.
   */
  consultOthers(): Promise<Later | { readonly level: number } | null>;
  advise(command: AdviseCommand): Promise<AdviceEnd>;
}

/** Nothing was done; repeat the transition after the delay. */
export interface Later {
  readonly delay_ms: number;
}

/** A correction's call waits in line for a free slot; repeat the transition when it is called. */
export interface InLine {
  /** At this time in any case, Unix ms; null = never. */
  readonly in_line: { readonly until: number | null };
}

/** The meaning of a transition for the caller that waits for the ladder. */
export type LadderOutcome =
  | { readonly kind: 'goes_on' }
  /** `teaches`: the lesson may become a skill. */
  | { readonly kind: 'succeeded'; readonly lesson: Lesson | null; readonly teaches: boolean }
  | { readonly kind: 'stopped'; readonly reason: StopReason; readonly error: string | null }
  /** Ended by a person, or by the step's `queue_timeout`. */
  | {
      readonly kind: 'ended';
      readonly state: 'succeeded' | 'failed' | 'cancelled';
      readonly error: Failure | null;
      readonly result?: Json;
    };

export interface LadderTransition {
  readonly next: Ladder;
  readonly outcome: LadderOutcome;
  /** A description of the transition, for the run's log. */
  readonly event: JsonObject;
  readonly execution?: LevelExecution;
}

/** A transition, or when to repeat it. */
export type MadeTransition = LadderTransition | Later | InLine;

export async function makeTransition(ports: LadderPorts, ladder: Ladder): Promise<MadeTransition> {
  const { command, decided } = ladder;
  if (decided !== null && ports.work.kind === 'step') {
    return runDecided(ports, { ladder, decided, correction: await ports.work.correction() });
  }
  switch (command.type) {
    case 'execute':
      return execute(ports, ladder, command);
    case 'advise':
      return advise(ports, ladder, command);
    case 'succeed':
    case 'stop':
      return standStill(ladder);
  }
}

/** The transition of a ladder that is at its end already, as one that starts there (L8). */
export function standStill(ladder: Ladder): LadderTransition {
  const event = { kind: 'asked', level: humanLevel, label: labelOf(humanLevel) };
  return { next: ladder, event, outcome: outcomeOf(ladder) };
}

/** The outcome of a ladder, by the state of its machine. */
function outcomeOf({ command }: Ladder, execution?: LevelExecution): LadderOutcome {
  switch (command.type) {
    case 'execute':
    case 'advise':
      return { kind: 'goes_on' };
    case 'succeed': {
      const { lesson } = command;
      return { kind: 'succeeded', lesson, teaches: lesson !== null && execution?.solved_by === null };
    }
    case 'stop':
      return { kind: 'stopped', reason: command.reason, error: command.error };
  }
}

async function execute(
  ports: LadderPorts,
  ladder: Ladder,
  { level }: ExecuteCommand,
): Promise<MadeTransition> {
  const { work } = ports;
  const execution =
    work.kind === 'job' ? await work.execute(level) : await executeCorrection(await work.correction(), level);
  const { end, skills } = execution;
  if (isDelayed(end)) return toDelay(end);
  if (end.kind === 'too_late') return endLate(ladder, execution, end.error);
  const seen = level === 0 ? skills.map(({ skill }) => skill.id) : [];
  const next = {
    ...applyEvent(withFailures(ladder, execution, ports), toLadderEvent(end, ports)),
    seen_skills: [...new Set([...ladder.seen_skills, ...seen])],
  };
  const event = { kind: 'executed', level, outcome: end.kind, ...decidersOf(execution) };
  return { next, execution, event, outcome: outcomeOf(next, execution) };
}

function isDelayed(end: ExecutionEnd): end is ExecutionDelay {
  return end.kind === 'interrupted' || end.kind === 'in_line';
}

function toDelay(end: ExecutionDelay): Later | InLine {
  return end.kind === 'in_line' ? { in_line: { until: end.until } } : { delay_ms: end.delayMs };
}

/** L13 */
function endLate(next: Ladder, execution: LevelExecution, error: Failure): LadderTransition {
  const event = { kind: 'executed', level: execution.level, outcome: execution.end.kind };
  return { next, execution, event, outcome: { kind: 'ended', state: 'failed', error } };
}

/** The decisions that the correction followed, if its skill was made from decisions. */
function decidersOf({ skills, solved_by }: LevelExecution): JsonObject {
  const as_decided = skills.find(({ skill }) => skill.id === solved_by)?.skill.as_decided;
  return as_decided === undefined ? {} : { as_decided: { ...as_decided } };
}

/** Adds every failed execution to the history, also when one transition tried several templates (L3). */
function withFailures(
  ladder: Ladder,
  { level, failed_before }: LevelExecution,
  context: ErrorContext,
): Ladder {
  const made = failed_before.map((failure) => createAttempt({ level, ...failedAt(failure, context) }));
  return { ...ladder, history: [...ladder.history, ...made] };
}

async function advise(
  ports: LadderPorts,
  ladder: Ladder,
  command: AdviseCommand,
): Promise<LadderTransition | Later> {
  const others = await ports.consultOthers();
  if (others !== null) return 'delay_ms' in others ? others : goBack(ladder, others.level);
  const end = await ports.advise(command);
  if (end.kind === 'interrupted') return { delay_ms: end.delayMs ?? interruptionMs };
  const next = applyEvent(ladder, toAdviceEvent(end, ports));
  const event = { kind: 'advised', level: command.from_level, outcome: end.kind };
  return { next, event, outcome: outcomeOf(next) };
}

function toAdviceEvent(end: Exclude<AdviceEnd, { kind: 'interrupted' }>, context: ErrorContext): LadderEvent {
  if (end.kind !== 'advised') return toLadderEvent(end, context);
  const { instructions, reasoning, suggested_executor_level } = end;
  return { type: 'advised', instructions, reasoning, suggested_executor_level };
}

/** Restarts once to use what another ladder has learnt (L9). */
function goBack(ladder: Ladder, level: number): LadderTransition {
  const next = { ...restartLadder(ladder, level), has_followed: true };
  return { next, outcome: { kind: 'goes_on' }, event: { kind: 'followed', level } };
}

interface DecidedRun {
  readonly ladder: Ladder;
  readonly decided: DecidedInput;
  readonly correction: CorrectionPorts;
}

/** Runs a person's input, and opens a review again if it fails (L12). */
async function runDecided(
  ports: LadderPorts,
  { ladder, decided: { input, review_id, remember }, correction }: DecidedRun,
): Promise<MadeTransition> {
  const end = await executeDecided(correction, { input, source: `review:${review_id}` });
  if (isDelayed(end)) return toDelay(end);
  const execution = endExecution(humanLevel, end, { input });
  if (end.kind === 'too_late') return endLate({ ...ladder, decided: null }, execution, end.error);
  const event = { kind: 'executed', level: humanLevel, outcome: end.kind, review_id };
  if (end.kind !== 'failed') {
    const outcome: LadderOutcome = { kind: 'succeeded', lesson: null, teaches: remember };
    return { next: { ...ladder, decided: null }, execution, event, outcome };
  }
  const attempt = failedAt(end.error, ports);
  if (end.class === 'budget') {
    const next = { ...ladder, command: stopForMoney({ ...attempt, refusal: refusalOf(end.error) }) };
    return { next, execution, event, outcome: outcomeOf(next) };
  }
  const next: Ladder = {
    ...ladder,
    decided: null,
    history: [...ladder.history, createAttempt({ level: humanLevel, ...attempt })],
    command: { type: 'stop', reason: 'exhausted', error: attempt.error },
  };
  return { next, execution, event, outcome: outcomeOf(next) };
}

/** The end of an autonomous ladder whose time is over or whose result is no longer needed. */
export function interruptLadder(
  ladder: Ladder,
  type: 'timed_out' | 'cancel_requested',
): Pick<LadderTransition, 'next' | 'outcome'> {
  if (ladder.decided === null) {
    const next = applyEvent(ladder, { type });
    return { next, outcome: outcomeOf(next) };
  }
  const reason = type === 'timed_out' ? 'time' : 'cancelled';
  const error = ladder.history.at(-1)?.error ?? null;
  return { next: { ...ladder, decided: null }, outcome: { kind: 'stopped', reason, error } };
}

/** The delay before a command is repeated after a transient failure, by the retry table, ms. @param random 0 … 1 */
export function transientDelayMs({ command }: Pick<Ladder, 'command'>, random: number): number {
  const count = command.type === 'execute' || command.type === 'advise' ? command.transients : 0;
  return count === 0 ? 0 : backoffMs(defaultRetry, count, random);
}
