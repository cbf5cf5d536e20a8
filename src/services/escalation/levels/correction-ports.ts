/** The corrections of an escalated step by the database, the level's model and the ordinary execution of a step. */
import type { JsonObject } from '../../../contracts/primitives.ts';
import type {
  AskedCorrection,
  CorrectionAnswer,
  CorrectionPorts,
} from '../../../core/ladder/execute-correction.ts';
import type { RankedSkill } from '../../../core/skills/match.ts';
import { listTransitionRevisions } from '../../../db/step/step-revision.ts';
import type { SkillMatcher } from '../../skills/match-skills.ts';
import type { EscalatedTask } from '../ladder/escalated-task.ts';
import { writeCorrectPrompt } from '../prompts/correct-prompt.ts';
import { given, shortenError, showAdvice, showHistory, showSkills } from '../prompts/prompt-facts.ts';
import { askModel, type ModelCall, type ModelDependencies, type ModelEnd } from './ask-model.ts';
import type { AnswerReader } from './model-answer.ts';
import { type CorrectionDependencies, runCorrection } from './run-correction.ts';

export interface StepLevelDependencies extends CorrectionDependencies, ModelDependencies {
  readonly matcher: SkillMatcher;
  readonly reader: AnswerReader;
}

export function createCorrectionPorts(
  dependencies: StepLevelDependencies,
  task: EscalatedTask,
  call: ModelCall,
): CorrectionPorts {
  const { db, matcher, reader } = dependencies;
  const { row, signals, error } = task;
  const { project_id, job_type, escalation_id, transition } = row;
  const query = { project_id, job_type, signals, error };
  const read = (end: ModelEnd): CorrectionAnswer =>
    end.kind === 'answered' ? reader.readCorrect(end.answer, task.current) : end;
  return {
    task,
    error,
    stored: () => listTransitionRevisions(db, escalation_id, transition),
    matchTemplates: () => matcher.match({ ...query, with_template: true }),
    ask: async (level): Promise<AskedCorrection> => {
      const skills = await matcher.match(query);
      const messages = writeCorrectPrompt(showTask(task, skills));
      const end = await askModel(dependencies, call, { level, kind: 'correct', messages });
      return { answer: read(end), model: end.kind === 'answered' ? end.model : null, skills };
    },
    run: (correction) => runCorrection(dependencies, { task, correction, signal: call.signal }),
  };
}

function showTask(task: EscalatedTask, skills: readonly RankedSkill[]): JsonObject {
  const { definition, ladder, spec, current, error } = task;
  const findings = spec?.find(current).map(({ pointer, message }) => ({ pointer, message })) ?? [];
  return {
    capability: task.capability,
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

function malformedOf({ ladder: { command } }: EscalatedTask): string | null {
  return command.type === 'execute' && command.malformed !== null ? shortenError(command.malformed) : null;
}
