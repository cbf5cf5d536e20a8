/**
 * What spans say of calls of models, by the names of OpenTelemetry's conventions for generative AI, which are in
 * development and have no release: all that we use of them stands here. Prompts and answers are never part of it. What a
 * call cost has no name there yet.
 */
import type { Json } from '../../contracts/primitives.ts';
import { isPlainObject } from '../json/values.ts';
import type { SpanAttributes } from './telemetry.ts';

const genAi = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  responseModel: 'gen_ai.response.model',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  finishReasons: 'gen_ai.response.finish_reasons',
} as const;

/** The capability and the tags of the instance that answered. */
export interface ModelInstance {
  readonly capability: string;
  readonly tags: readonly string[];
}

export function isModel(capability: string): boolean {
  return capability.startsWith('model.');
}

export interface ModelUse {
  readonly model: string;
  readonly input: number | null;
  readonly output: number | null;
  readonly finishReason: string | null;
}

const longestName = 256;

function readCount(value: Json | undefined): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

/** What a model says of an answer; null where it says nothing. */
export function readModelUse(output: Json): ModelUse | null {
  if (!isPlainObject(output) || typeof output.model !== 'string') return null;
  const usage = isPlainObject(output.usage) ? output.usage : {};
  return {
    model: output.model.slice(0, longestName),
    input: readCount(usage.input_tokens),
    output: readCount(usage.output_tokens),
    finishReason:
      typeof output.finish_reason === 'string' ? output.finish_reason.slice(0, longestName) : null,
  };
}

/** Before it is answered: the router asks for a level, so that is the model that was asked for. */
export function describeModelRequest({ capability, tags }: ModelInstance): SpanAttributes {
  const provider = tags.find((tag) => tag !== 'model' && tag !== 'local');
  return {
    [genAi.operation]: 'chat',
    [genAi.requestModel]: capability,
    ...(provider === undefined ? {} : { [genAi.provider]: provider }),
  };
}

export function describeModelUse({ model, input, output, finishReason }: ModelUse): SpanAttributes {
  return {
    [genAi.responseModel]: model,
    ...(input === null ? {} : { [genAi.inputTokens]: input }),
    ...(output === null ? {} : { [genAi.outputTokens]: output }),
    ...(finishReason === null ? {} : { [genAi.finishReasons]: [finishReason] }),
  };
}
