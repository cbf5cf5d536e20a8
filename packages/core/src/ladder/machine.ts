/**
 * The escalation ladder: which level executes next, which advises, and when a person takes over. Pure; the state has
 * one command at a time. Invariants, for any answers (r = advices a level may give):
 *
 * L1 A level gives at most r advices, so there are at most 4r advices and 4r + 2 executions.
 * L2 Repeated advice on an error comes from ever higher levels, so one constant error costs at most 4 advices and 6
 *    executions.
 * L3 Both lists only grow, entries never change.
 * L4 A transient or malformed answer is in no list; after `max_transients`, or the second malformed one, it counts.
 * L5 The first execution is at the stored level, later ones at the level suggested, else 0, never below
 *    `lowest_level` (a step's `start_level`). So a step, whose own call is `history[0]`, has a free try first.
 * L6 Nothing to apply at level 0 (`no_template`) is the known failure again, not an attempt.
 * L7 Advice equal to an earlier one for the same error is not executed again.
 * L8 A ladder opened for a person starts at its end: nothing is executed before a decision.
 */
import { keepError } from './error-text.ts';
import { humanLevel, labelOf, topLevel } from './levels.ts';
import type {
  AdviseCommand,
  ExecuteCommand,
  LadderAdvice,
  LadderAttempt,
  LadderEvent,
  LadderStart,
  LadderState,
  Lesson,
  StopCommand,
  StopReason,
} from './types.ts';

type Event<T extends LadderEvent['type']> = LadderEvent & { readonly type: T };
type Pending = ExecuteCommand | AdviseCommand;

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}

/** @param start lists as stored on the job, which are not changed */
export function startLadder(start: LadderStart): LadderState {
  const max_level = clamp(start.max_level ?? topLevel, 0, topLevel);
  const rules = {
    max_level,
    lowest_level: clamp(start.lowest_level ?? 0, 0, max_level),
    max_advices_per_level: start.max_advices_per_level ?? 3,
    max_transients: start.max_transients ?? 3,
  };
  const command =
    start.start_level >= humanLevel
      ? stop('exhausted', start.history.at(-1)?.error ?? null)
      : execute(clamp(start.start_level, 0, max_level));
  return { rules, history: start.history, advice: start.advice, command };
}

/** An entry of the history, with the level's label and a bounded error. */
export function createAttempt(attempt: Omit<LadderAttempt, 'label'>): LadderAttempt {
  return {
    level: attempt.level,
    label: labelOf(attempt.level),
    attempted_at: attempt.attempted_at,
    error: keepError(attempt.error),
    fingerprint: attempt.fingerprint,
  };
}

/** @returns the next state (L3); the same state when the event does not answer its command */
export function applyLadder(state: LadderState, event: LadderEvent): LadderState {
  const { command } = state;
  if (command.type === 'succeed' || command.type === 'stop') return state;
  switch (event.type) {
    case 'cancel_requested':
      return { ...state, command: stop('cancelled', lastError(state)) };
    case 'timed_out':
      return { ...state, command: stop('time', lastError(state)) };
    case 'unavailable':
      return fallThrough(state, command);
    case 'failed':
      return applyFailure(state, command, event);
    case 'advised':
      return command.type === 'advise' ? takeAdvice(state, command, event) : state;
    case 'succeeded':
      return command.type === 'execute' ? succeed(state, command) : state;
    case 'no_template':
    case 'gave_up':
      return command.type === 'execute' ? failExecution(state, command, event) : state;
  }
}

/** Repeats the request after a transient or malformed answer before it counts (L4). */
function applyFailure(state: LadderState, command: Pending, event: Event<'failed'>): LadderState {
  switch (event.class) {
    case 'transient':
      if (command.transients < state.rules.max_transients) {
        return { ...state, command: { ...command, transients: command.transients + 1 } };
      }
      return command.type === 'advise'
        ? fallThrough(state, command)
        : { ...state, command: stop('ops', event.error) };
    case 'malformed':
      if (command.malformed === null) {
        return { ...state, command: { ...command, malformed: keepError(event.error) } };
      }
      return failCommand(state, command, event);
    case 'real':
      return failCommand(state, command, event);
    case 'config':
      return { ...state, command: stop('ops', event.error) };
    case 'budget':
      return { ...state, command: stopForMoney(event) };
  }
}

/** Skips an advisor that fails for good, as if the level had no instance. */
function failCommand(state: LadderState, command: Pending, event: Event<'failed'>): LadderState {
  return command.type === 'execute' ? failExecution(state, command, event) : fallThrough(state, command);
}

function fallThrough(state: LadderState, command: Pending): LadderState {
  if (command.type === 'advise') return climb(state, command.from_level);
  const { lowest_level, max_level } = state.rules;
  return command.level < max_level
    ? { ...state, command: execute(Math.max(command.level + 1, lowest_level)) }
    : { ...state, command: stop(hasAskedModel(state) ? 'exhausted' : 'no_advisor', lastError(state)) };
}

function hasAskedModel({ history, advice }: LadderState): boolean {
  return advice.length > 0 || history.some(({ level }) => level > 0);
}

/** Adds the failure to the history (L3), unless it is already known (L6). */
function failExecution(
  state: LadderState,
  { level }: ExecuteCommand,
  event: Event<'failed' | 'no_template' | 'gave_up'>,
): LadderState {
  const isKnown = event.type === 'no_template' && state.history.length > 0;
  const history = isKnown ? state.history : [...state.history, createAttempt({ ...event, level })];
  const failed = { ...state, history };
  if (level < state.rules.max_level) return climb(failed, level);
  const reason = event.type === 'gave_up' ? 'gave_up' : 'exhausted';
  return { ...failed, command: stop(reason, lastError(failed)) };
}

/** Asks the lowest level above `level` that may still answer the last error (L1, L2), else executes once at the top. */
function climb(state: LadderState, level: number): LadderState {
  const { rules, advice } = state;
  const { error, fingerprint } = state.history.at(-1) as LadderAttempt;
  const asked = advice.filter((one) => one.fingerprint === fingerprint).map((one) => one.from_level);
  for (
    let x = Math.max(level + 1, rules.lowest_level, ...asked.map((from) => from + 1));
    x <= rules.max_level;
    x++
  ) {
    const given = advice.filter(({ from_level }) => from_level === x).length;
    if (given < rules.max_advices_per_level) return { ...state, command: advise(x, error, fingerprint) };
  }
  return { ...state, command: execute(rules.max_level) };
}

/** Executes at the level that the advice suggests (L5), unless it was given before (L7). */
function takeAdvice(state: LadderState, command: AdviseCommand, event: Event<'advised'>): LadderState {
  const suggested = readLevel(event.suggested_executor_level);
  const given: LadderAdvice = {
    from_level: command.from_level,
    label: command.label,
    instructions: event.instructions,
    ...(event.reasoning === undefined ? {} : { reasoning: event.reasoning }),
    ...(suggested === undefined ? {} : { suggested_executor_level: suggested }),
    fingerprint: command.fingerprint,
  };
  const advised = { ...state, advice: [...state.advice, given] };
  if (suggested === humanLevel) {
    return { ...advised, command: stop('advisor_says_human', lastError(state)) };
  }
  if (state.advice.some((earlier) => isSameAdvice(earlier, given))) return climb(advised, command.from_level);
  const { lowest_level, max_level } = state.rules;
  return { ...advised, command: execute(clamp(suggested ?? 0, lowest_level, max_level)) };
}

function isSameAdvice(a: LadderAdvice, b: LadderAdvice): boolean {
  return (
    a.fingerprint === b.fingerprint &&
    a.instructions === b.instructions &&
    a.suggested_executor_level === b.suggested_executor_level
  );
}

/** Ignores a suggestion that is not an integer; clamps any other to 0 to 5. */
function readLevel(suggested: number | undefined): number | undefined {
  return suggested !== undefined && Number.isInteger(suggested) ? clamp(suggested, 0, humanLevel) : undefined;
}

function succeed(state: LadderState, { level }: ExecuteCommand): LadderState {
  return { ...state, command: { type: 'succeed', level, lesson: learn(state) } };
}

function learn({ history, advice }: LadderState): Lesson | null {
  const last = advice.at(-1);
  const attempt = history.findLast(({ fingerprint }) => fingerprint === last?.fingerprint) ?? history.at(-1);
  return last === undefined || attempt === undefined ? null : { advice: last, attempt };
}

function lastError({ history }: LadderState): string | null {
  return history.at(-1)?.error ?? null;
}

function execute(level: number): ExecuteCommand {
  return {
    type: 'execute',
    level,
    label: labelOf(level),
    transients: 0,
    malformed: null,
  };
}

function advise(from_level: number, error: string, fingerprint: string): AdviseCommand {
  return {
    type: 'advise',
    from_level,
    label: labelOf(from_level),
    error,
    fingerprint,
    transients: 0,
    malformed: null,
  };
}

function stop(reason: StopReason, error: string | null): StopCommand {
  return { type: 'stop', reason, error };
}

/** @param refusal the budget that had no room, if it was a budget */
export function stopForMoney({ error, refusal }: Pick<Event<'failed'>, 'error' | 'refusal'>): StopCommand {
  return { ...stop('budget', error), ...(refusal === undefined ? {} : { refusal }) };
}
