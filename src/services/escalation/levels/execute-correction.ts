/**
 * One execution for a step: find a corrected input (level 0: rules and skills; above it: the level's model), check it,
 * store it, run it. What a model may answer is an input or a patch; a correction that is refused is a failure like any
 * other, so that the next advisor hears of it.
 */
import type { JsonObject } from '../../../contracts/primitives.ts';
import { capabilityOf } from '../../../core/definition/step-kind.ts';
import { isEqual } from '../../../core/expression/equality.ts';
import { labelOf } from '../../../core/ladder/labels.ts';
import { listTransitionRevisions } from '../../../db/step/step-revision.ts';
import type { RankedSkill, SkillMatcher } from '../../skills/match-skills.ts';
import { type CorrectionDependencies, runCorrection } from '../ladder/run-correction.ts';
import {
  findCorrectionFault,
  readStepTask,
  type StepTask,
  type TaskDependencies,
} from '../ladder/step-task.ts';
import { writeCorrectPrompt } from '../prompts/correct-prompt.ts';
import { given, shortenError, showAdvice, showHistory, showSkills } from '../prompts/prompt-facts.ts';
import { askModel, type ModelCall, type ModelDependencies } from './ask-model.ts';
import { type Execution, type ExecutionEnd, endExecution } from './execution.ts';
import { findCorrections, type LevelZero, repairSource } from './level-zero.ts';
import type { AnswerReader, CorrectReading } from './model-answer.ts';

export interface StepLevelDependencies extends CorrectionDependencies, TaskDependencies, ModelDependencies {
  readonly matcher: SkillMatcher;
  readonly reader: AnswerReader;
}

/** What a step's capability could take is not known, as no instance has said so yet. */
function withoutSpec(level: number, { definition }: StepTask): Execution {
  const message = `no instance of ${capabilityOf(definition)} has said what input it takes`;
  return endExecution(level, { kind: 'failed', class: 'transient', error: { code: 'no_instance', message } });
}

export async function executeCorrection(
  dependencies: StepLevelDependencies,
  row: StepTask['row'],
  level: number,
  call: ModelCall,
): Promise<Execution> {
  const task = await readStepTask(dependencies, row);
  if (task.spec === null) return withoutSpec(level, task);
  return level === 0 ? executeRules(dependencies, task, call) : executeModel(dependencies, task, level, call);
}

/** What the transition has corrected before runs as it was; then what matches by now and was not among it. */
async function listCorrections({ db, matcher }: StepLevelDependencies, task: StepTask): Promise<LevelZero> {
  const { escalation_id, transition } = task.row;
  const stored = await listTransitionRevisions(db, escalation_id, transition);
  const { corrections, skills } = await findCorrections(matcher, task);
  const fresh = corrections.filter(({ input }) => !stored.some((one) => isEqual(one.input, input)));
  return { corrections: [...stored, ...fresh].map((one, choice) => ({ ...one, choice })), skills };
}

/** Every correction in turn, until one succeeds or something else than its input stops it. */
async function executeRules(
  dependencies: StepLevelDependencies,
  task: StepTask,
  { signal }: ModelCall,
): Promise<Execution> {
  const { corrections, skills } = await listCorrections(dependencies, task);
  const used: string[] = [];
  let last: Awaited<ReturnType<typeof runCorrection>> | null = null;
  for (const correction of corrections) {
    last = await runCorrection(dependencies, task, correction, signal);
    const { source } = last;
    // Also of one that does not match any more.
    const skillId = source === repairSource ? null : source;
    if (skillId !== null) used.push(skillId);
    if (last.end.kind === 'failed' && last.end.class === 'real') continue;
    const solved_by = last.end.kind === 'succeeded' ? skillId : null;
    return endExecution(0, last.end, { skills, used, solved_by, input: last.input });
  }
  if (last !== null) return endExecution(0, last.end, { skills, used, input: last.input });
  const message = `level 0 has no template for an input of ${capabilityOf(task.definition)}`;
  return endExecution(0, { kind: 'no_template', error: { code: 'no_template', message } }, { skills });
}

function showTask(task: StepTask, skills: readonly RankedSkill[]): JsonObject {
  const { definition, ladder, spec, current, error } = task;
  const findings = spec?.find(current).map(({ pointer, message }) => ({ pointer, message })) ?? [];
  return {
    capability: capabilityOf(definition),
    step: definition.id,
    input: current,
    ...given('step_description', definition.description),
    ...given('schema', spec?.schema),
    ...given('error', error === null ? null : shortenError(error)),
    validation_errors: findings,
    history: showHistory(ladder.history),
    advice: showAdvice(ladder.advice),
    skills: showSkills(skills),
    ...given('invalid_answer', malformedOf(task)),
  };
}

function malformedOf({ ladder: { command } }: StepTask): string | null {
  return command.type === 'execute' && command.malformed !== null ? shortenError(command.malformed) : null;
}

/** Why a readable answer is not executed; null when it is. */
function refuse(task: StepTask, reading: CorrectReading): ExecutionEnd | null {
  switch (reading.kind) {
    case 'malformed': {
      const error = { code: 'output_invalid', message: reading.message };
      return { kind: 'failed', class: 'malformed', error };
    }
    case 'gave_up':
      return {
        kind: 'gave_up',
        error: { code: 'gave_up', message: `the executor gave up: ${reading.reason}` },
      };
    case 'input': {
      const fault = findCorrectionFault(task, reading.input);
      if (fault === null) return null;
      // An input that has failed before fails the same way: it is not paid for again.
      const message = fault.code === 'tried' ? (task.error ?? fault.message) : fault.message;
      const code = fault.code === 'tried' ? 'input_rejected' : fault.code;
      return { kind: 'failed', class: 'real', error: { code, message } };
    }
  }
}

async function executeModel(
  dependencies: StepLevelDependencies,
  task: StepTask,
  level: number,
  call: ModelCall,
): Promise<Execution> {
  const { row, signals, error } = task;
  const source = labelOf(level);
  const [known] = await listTransitionRevisions(dependencies.db, row.escalation_id, row.transition);
  if (known !== undefined) {
    const ran = await runCorrection(dependencies, task, { ...known, choice: 0 }, call.signal);
    return endExecution(level, ran.end, { input: ran.input });
  }
  const { project_id, job_type } = row;
  const skills = await dependencies.matcher.match({ project_id, job_type, signals, error });
  const messages = writeCorrectPrompt(showTask(task, skills));
  const end = await askModel(dependencies, call, { level, kind: 'correct', messages });
  if (end.kind === 'interrupted') return endExecution(level, { ...end, delayMs: 1_000 });
  if (end.kind !== 'answered') return endExecution(level, end, { skills });
  const { model } = end;
  const reading = dependencies.reader.readCorrect(end.answer, task.current);
  const refused = refuse(task, reading);
  const used = reading.kind === 'input' ? reading.used : [];
  if (reading.kind !== 'input' || refused !== null) {
    return endExecution(level, refused ?? { kind: 'unavailable' }, { model, skills, used });
  }
  const ran = await runCorrection(
    dependencies,
    task,
    { input: reading.input, source, choice: 0 },
    call.signal,
  );
  return endExecution(level, ran.end, { model, skills, used, input: ran.input });
}
