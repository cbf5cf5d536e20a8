/** OpenAI's responses, as far as a call that travels as it came is counted by them. */
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { isList } from '@capstan/core/json/values';
import { readProviderError, unnamedError } from '../exchange/provider-failure.ts';
import type { GrowingAnswer } from './model-answer.ts';
import { readResponsesUsage } from './money/usage.ts';
import { type AnswerReader, fieldOf, readObjects, textField } from './protocol.ts';

function takeResponse(response: Json | undefined, answer: GrowingAnswer): void {
  answer.model(textField(response, 'model'));
  const output = fieldOf(response, 'output') ?? null;
  if (isList(output) && output.length > 0) answer.text(' ');
  answer.usage(readResponsesUsage(fieldOf(response, 'usage')));
  const reason = textField(fieldOf(response, 'incomplete_details'), 'reason');
  answer.finish(reason || textField(response, 'status'));
  const error = fieldOf(response, 'error') ?? null;
  if (error !== null) answer.fail(readProviderError({ error }) ?? unnamedError);
}

const lastEvents = ['response.completed', 'response.incomplete', 'response.failed'];

/** @returns true for the last event */
function takeEvent(event: JsonObject, type: string, answer: GrowingAnswer): boolean {
  if (type === 'error') {
    answer.fail(readProviderError(event) ?? unnamedError);
    return true;
  }
  // Before its end an answer has a name and no counts.
  answer.model(textField(event.response, 'model'));
  if (type.endsWith('.delta')) answer.text(' ');
  if (!lastEvents.includes(type)) return false;
  takeResponse(event.response, answer);
  return true;
}

export function createResponsesReader(answer: GrowingAnswer): AnswerReader {
  return {
    event: ({ name, data }) =>
      data.trim() === '[DONE]' ||
      readObjects(data).some((event) => takeEvent(event, textField(event, 'type') || name, answer)),
    whole: (response) => {
      if (!isList(response.output ?? null) && (response.error ?? null) === null) return false;
      takeResponse(response, answer);
      return true;
    },
  };
}
