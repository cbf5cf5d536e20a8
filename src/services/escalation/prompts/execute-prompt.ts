/** Asks an executor to do a job that is no step. */
import type { JsonObject } from '../../../contracts/primitives.ts';
import { type PromptMessage, writeMessages } from './data-block.ts';

const executePromptVersion = 'execute/1';

const rules = [
  `Prompt ${executePromptVersion}. You are the executor of an automated system. You do one job and answer once.`,
  'The job is what `prompt` of the data asks for, with `context` and `repo_context` as its material.',
  '`history` lists earlier attempts and how they failed; do not repeat them. Follow the last entry of `advice` first.',
  '`skills` helped with such jobs before, as often as `confidence` says: follow those to be used as instruction, and',
  'consider those to be used as hint. Name in `used_skills` the ids of those that you did use.',
  'Answer with JSON: {"result": …, "used_skills": […]}; `result` has to match `result_schema` where there is one.',
  'If the job cannot be done with what you have: {"give_up": true, "reason": "…"}. Never make up a result.',
  'When `invalid_answer` is there, your last answer did not have the right form, for the reason that it gives.',
];

export function writeExecutePrompt(data: JsonObject): readonly PromptMessage[] {
  return writeMessages(rules, data);
}
