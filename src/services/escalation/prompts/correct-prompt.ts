/** Asks an executor for a corrected input of a pipeline step. */
import type { JsonObject } from '../../../contracts/primitives.ts';
import { type PromptMessage, writeMessages } from './data-block.ts';

const correctPromptVersion = 'correct/1';

const rules = [
  `Prompt ${correctPromptVersion}. You are the executor of an automated system. A step of a pipeline failed; you correct`,
  'its input, and the system runs it again. You do nothing else.',
  '`input` is the input that failed last, `error` what the capability said, `schema` the JSON Schema of its inputs,',
  '`validation_errors` what is wrong by that schema. `history` lists earlier attempts; do not repeat them.',
  'Follow the last entry of `advice` first. `skills` helped with such errors before, as often as `confidence` says:',
  'follow those to be used as instruction, and consider those to be used as hint. Name in `used_skills` those used.',
  'Change as little as possible. Never change `output_path`, URLs or media:// references, and never name a host that',
  'the input does not name; such a correction is refused.',
  'Answer with JSON: {"patch": [JSON Patch operations on `input`], "used_skills": […]}, or with the whole corrected',
  'input: {"input": {…}, "used_skills": […]}. If no input can work: {"give_up": true, "reason": "…"}.',
  'When `invalid_answer` is there, your last answer did not have the right form, for the reason that it gives.',
];

export function writeCorrectPrompt(data: JsonObject): readonly PromptMessage[] {
  return writeMessages(rules, data);
}
