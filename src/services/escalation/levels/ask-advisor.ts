/** Asks a level's model for advice, for a job or for a step. */
import type { JsonObject } from '../../../contracts/primitives.ts';
import type { AdviceEnd } from '../../../core/ladder/drive.ts';
import { writeAdvisePrompt } from '../prompts/advise-prompt.ts';
import { askModel, type ModelCall, type ModelDependencies } from './ask-model.ts';
import type { AnswerReader } from './model-answer.ts';

export interface AdvisorDependencies extends ModelDependencies {
  readonly reader: AnswerReader;
}

export async function askAdvisor(
  dependencies: AdvisorDependencies,
  call: ModelCall,
  { level, facts }: { readonly level: number; readonly facts: JsonObject },
): Promise<AdviceEnd> {
  const messages = writeAdvisePrompt(facts);
  const end = await askModel(dependencies, call, { level, kind: 'advise', messages });
  if (end.kind !== 'answered') return end;
  const reading = dependencies.reader.readAdvise(end.answer);
  if (reading.kind === 'malformed') {
    return {
      kind: 'failed',
      class: 'malformed',
      error: { code: 'output_invalid', message: reading.message },
    };
  }
  const { instructions, reasoning, suggested = 0 } = reading;
  return { kind: 'advised', instructions, reasoning, suggested_executor_level: suggested };
}
