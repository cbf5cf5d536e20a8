/**
 * Makes one execution for a step, over ports: find a corrected input (level 0: rules and skills; above it: the level's
 * model), check it, run it. A model answers with an input or a patch. A refused correction is a failure like any other,
 * so that the next advisor sees it. A correction that was stored before the worker died runs unchanged (L10).
 *
 * Also holds how one execution at a level ended, in the ladder's terms, and the skills that took part.
 */
import type { ErrorCode } from '../contracts/errors.ts';
import type { Failure, Json } from '../contracts/primitives.ts';
import { isEqual } from '../expression/compare.ts';
import type { RankedSkill } from '../skills/match.ts';
import { classOfCorrection, type FailureClass, refusalOf } from './classify-failure.ts';
import {
  type CorrectedInput,
  type CorrectionTask,
  findCorrectionFault,
  findCorrections,
  repairSource,
  withAnswers,
} from './correction.ts';
import { type ErrorContext, failedAt } from './ladder.ts';
import { labelOf } from './levels.ts';
import type { LadderEvent } from './types.ts';

export interface NumberedCorrection extends CorrectedInput {
  /** 0 for the first of the transition. */
  readonly choice: number;
}

export interface RanCorrection extends CorrectedInput {
  readonly end: ExecutionEnd;
}

/** A level's model's correction of a step's input. */
export type CorrectionAnswer =
  /** `used`: ids of skills, as the model gave them. */
  | { readonly kind: 'input'; readonly input: Json; readonly used: readonly string[] }
  | { readonly kind: 'gave_up'; readonly reason: string }
  /** The answer does not fit its schema; the message explains the fault to the model. */
  | { readonly kind: 'malformed'; readonly message: string }
  | { readonly kind: 'failed'; readonly class: FailureClass; readonly error: Failure }
  | { readonly kind: 'unavailable' }
  | Interruption;

/** Not asked now: the caller has gone, another process makes the call, or, with its error, the call was refused for now. */
export interface Interruption {
  readonly kind: 'interrupted';
  /** When it may be asked; default: in a second. */
  readonly delayMs?: number;
  readonly error?: Failure;
}

export interface AskedCorrection {
  readonly answer: CorrectionAnswer;
  /** As the provider named it. */
  readonly model: string | null;
  /** Skills that the model was shown. */
  readonly skills: readonly RankedSkill[];
}

export interface CorrectionPorts {
  readonly task: CorrectionTask;
  /** The last error of the history. */
  readonly error: string | null;
  /** Earlier corrections of this transition, in the order of its choices. */
  stored(): Promise<readonly CorrectedInput[]>;
  /** Skills with a template that match the last error, best first. */
  matchTemplates(): Promise<readonly RankedSkill[]>;
  /** Asks the level's model. */
  ask(level: number): Promise<AskedCorrection>;
  /** Stores the correction and executes it. @returns what ran: the stored one when the transition is repeated */
  run(correction: NumberedCorrection): Promise<RanCorrection>;
}

/** Delay before an interrupted transition is repeated. */
export const interruptionMs = 1_000;

export function executeCorrection(ports: CorrectionPorts, level: number): Promise<LevelExecution> {
  if (ports.task.spec === null) return Promise.resolve(withoutSpec(level, ports.task));
  return level === 0 ? executeRules(ports) : executeModel(ports, level);
}

/** The accepted input is unknown, because no instance has published its spec. */
function withoutSpec(level: number, { capability }: CorrectionTask): LevelExecution {
  const message = `no instance of ${capability} has said what input it takes`;
  return endExecution(level, { kind: 'failed', class: 'transient', error: { code: 'no_instance', message } });
}

/** Runs each correction in turn, until one succeeds or fails for a reason other than its input. */
async function executeRules(ports: CorrectionPorts): Promise<LevelExecution> {
  const stored = await ports.stored();
  const skills = await ports.matchTemplates();
  const found = await withAnswers(ports.task, (task) => findCorrections(task, skills));
  const fresh = found.filter(({ input }) => !stored.some((one) => isEqual(one.input, input)));
  const used: string[] = [];
  const failures: Failure[] = [];
  let last: RanCorrection | null = null;
  for (const [choice, correction] of [...stored, ...fresh].entries()) {
    last = await ports.run({ ...correction, choice });
    // Includes a skill that no longer matches.
    const skillId = last.source === repairSource ? null : last.source;
    if (skillId !== null) used.push(skillId);
    if (last.end.kind === 'failed' && last.end.class === 'real') {
      failures.push(last.end.error);
      continue;
    }
    const solved_by = last.end.kind === 'succeeded' ? skillId : null;
    return endExecution(0, last.end, { skills, used, solved_by, failed_before: failures, input: last.input });
  }
  const failed_before = failures.slice(0, -1);
  if (last !== null) return endExecution(0, last.end, { skills, used, failed_before, input: last.input });
  const message = `level 0 has no template for an input of ${ports.task.capability}`;
  return endExecution(0, { kind: 'no_template', error: { code: 'no_template', message } }, { skills });
}

async function executeModel(ports: CorrectionPorts, level: number): Promise<LevelExecution> {
  const [known] = await ports.stored();
  if (known !== undefined) {
    const { end, input } = await ports.run({ ...known, choice: 0 });
    return endExecution(level, end, { input });
  }
  const { answer, model, skills } = await ports.ask(level);
  if (answer.kind === 'interrupted') return endExecution(level, { delayMs: interruptionMs, ...answer });
  const checked = await check(ports, answer);
  const used = answer.kind === 'input' ? answer.used : [];
  if ('end' in checked) return endExecution(level, checked.end, { model, skills, used });
  const { end, input } = await ports.run({ input: checked.input, source: labelOf(level), choice: 0 });
  return endExecution(level, end, { model, skills, used, input });
}

/** The input to execute, or the end without an execution. */
async function check(
  { task, error: lastError }: Pick<CorrectionPorts, 'task' | 'error'>,
  answer: Exclude<CorrectionAnswer, { kind: 'interrupted' }>,
): Promise<{ readonly input: Json } | { readonly end: ExecutionEnd }> {
  switch (answer.kind) {
    case 'unavailable':
    case 'failed':
      return { end: answer };
    case 'malformed': {
      const error = { code: 'output_invalid', message: answer.message };
      return { end: { kind: 'failed', class: 'malformed', error } };
    }
    case 'gave_up': {
      const message = `the executor gave up: ${answer.reason}`;
      return { end: { kind: 'gave_up', error: { code: 'gave_up', message } } };
    }
    case 'input': {
      const fault = await withAnswers(task, (answered) => findCorrectionFault(answered, answer.input));
      if (fault === null) return answer;
      // An input that has failed before fails the same way, so it is not executed again (L11).
      const message = fault.code === 'tried' ? (lastError ?? fault.message) : fault.message;
      const code = fault.code === 'tried' ? 'input_rejected' : fault.code;
      return { end: { kind: 'failed', class: 'real', error: { code, message } } };
    }
  }
}

/** Runs a person's input: checked and run like any other, but it may repeat one that has failed. */
export async function executeDecided(
  ports: CorrectionPorts,
  { input, source }: CorrectedInput,
): Promise<ExecutionEnd> {
  const fault = await withAnswers(ports.task, (task) => findCorrectionFault(task, input, true));
  if (fault !== null) return { kind: 'failed', class: 'real', error: { ...fault } };
  return (await ports.run({ input, source, choice: 0 })).end;
}

export type ExecutionEnd =
  /** `result`: of a job outside a step. */
  | { readonly kind: 'succeeded'; readonly result?: Json }
  | { readonly kind: 'no_template' | 'gave_up'; readonly error: Failure }
  | { readonly kind: 'failed'; readonly class: FailureClass; readonly error: Failure }
  /** The level has no instance. */
  | { readonly kind: 'unavailable' }
  /** No slot came within the `queue_timeout` of the step, which fails: no other input would have found one. */
  | { readonly kind: 'too_late'; readonly error: Failure }
  | ExecutionDelay;

/** Not done. */
export type ExecutionDelay =
  /** Repeat after the delay. */
  | (Interruption & { readonly delayMs: number })
  /** The call waits in line for a free slot: repeat when it is called, or at that time (Unix ms; null = never). */
  | { readonly kind: 'in_line'; readonly until: number | null };

/** The end of an execution whose corrected call has failed. */
export function failedCorrection(error: Failure): ExecutionEnd {
  const isLate = error.code === ('queue_timeout' satisfies ErrorCode);
  return isLate ? { kind: 'too_late', error } : { kind: 'failed', class: classOfCorrection(error), error };
}

export interface LevelExecution {
  readonly end: ExecutionEnd;
  readonly level: number;
  /** As the provider named it. */
  readonly model: string | null;
  /** Skills that were shown to the executor, or whose templates were tried. */
  readonly skills: readonly RankedSkill[];
  /** Ids of the skills that were used; only they can have caused a failure. */
  readonly used: readonly string[];
  /** The skill whose template produced the successful input. */
  readonly solved_by: string | null;
  /** Earlier failures of executions at the level in this transition, oldest first. */
  readonly failed_before: readonly Failure[];
  /** The step's input that was executed last. */
  readonly input?: Json;
}

export function endExecution(
  level: number,
  end: ExecutionEnd,
  part: Partial<Omit<LevelExecution, 'level' | 'end'>> = {},
): LevelExecution {
  return { level, end, model: null, skills: [], used: [], solved_by: null, failed_before: [], ...part };
}

/** The machine's event for an end. */
export function toLadderEvent(
  end: Exclude<ExecutionEnd, ExecutionDelay | { kind: 'too_late' }>,
  context: ErrorContext,
): LadderEvent {
  switch (end.kind) {
    case 'succeeded':
    case 'unavailable':
      return { type: end.kind };
    case 'no_template':
    case 'gave_up':
      return { type: end.kind, ...failedAt(end.error, context) };
    case 'failed': {
      const { class: failureClass, error } = end;
      return { type: 'failed', class: failureClass, ...failedAt(error, context), refusal: refusalOf(error) };
    }
  }
}
