/**
 * Span attributes for calls of models, by OpenTelemetry's conventions for generative AI, which are in development and
 * unreleased; all the names that Capstan uses are here. Prompts and answers are never included. The conventions have no
 * name for the cost of a call yet.
 */
import type { Json } from '../contracts/primitives.ts';
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

/** The model's report in an answer; null without one. */
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

/** Attributes before the answer: the router asks for a level, so the level is the requested model. */
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
