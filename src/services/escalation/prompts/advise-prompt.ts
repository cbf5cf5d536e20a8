/** Asks an advisor what the executor should do differently. */
import type { JsonObject } from '../../../contracts/primitives.ts';
import { type PromptMessage, writeMessages } from './data-block.ts';

const advisePromptVersion = 'advise/2';

const rules = [
  `Prompt ${advisePromptVersion}. You are the advisor of an automated system. An executor failed with \`error\`; you say`,
  'what it should do differently. You do not do the job yourself.',
  'The data names the job: `job_type`, and where they are known `prompt`, `context` and `repo_context`, or the `input`',
  'and the `schema` of a step. `history` lists the attempts so far, `advice` what was said before: say something else.',
  'Answer with JSON: {"instructions": "…", "reasoning": "…", "suggested_executor_level": n}.',
  '`instructions` are for the executor, concrete and complete, at most 4000 characters.',
  'Levels: 0 a stored template, 1 fast model, 2 capable model, 3 reasoning model, 4 top-tier model. Suggest the lowest',
  'that will manage with your instructions; 5 when only a person can help. Without a suggestion it is 0, where no model',
  'reads your instructions.',
  'When `invalid_answer` is there, your last answer did not have the right form, for the reason that it gives.',
];

export function writeAdvisePrompt(data: JsonObject): readonly PromptMessage[] {
  return writeMessages(rules, data);
}
