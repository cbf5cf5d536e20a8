/** A model level as a capability: stateless, one question to one provider per call, money as the provider counts it. */
import { z } from 'zod';
import { type Capability, defineCapability, type ExecContext } from '../../src/capability/index.ts';
import type { JsonObject } from '../../src/contracts/primitives.ts';
import {
  type AnswerDelta,
  askModel,
  type ModelAnswer,
  type OfferedTool,
  type Question,
} from './ask-model.ts';
import type { ModelSettings } from './configuration.ts';
import { explainProviderError, modelFailure } from './faults.ts';
import { createJsonReader, type JsonReader } from './json-answer.ts';
import { Message, mostTokens, systemOf, ToolCall, toModelMessages } from './messages.ts';
import { createLanguageModel } from './provider.ts';

const ToolName = z.string().regex(/^[\w-]{1,64}$/);

const Input = z
  .strictObject({
    messages: z.array(Message).min(1).max(1_000),
    response_schema: z.record(z.string(), z.unknown()).optional(),
    tools: z
      .array(
        z.strictObject({
          name: ToolName,
          description: z.string().optional(),
          parameters: z.record(z.string(), z.unknown()).optional(),
        }),
      )
      .max(128)
      .optional()
      .meta({ description: 'Functions that the model may call; the answer names them in `tool_calls`.' }),
    tool_choice: z
      .union([z.enum(['auto', 'none', 'required']), z.strictObject({ name: ToolName })])
      .optional(),
    max_output_tokens: z.number().int().min(1).optional(),
    temperature: z.number().min(0).max(2).optional(),
    top_p: z.number().min(0).max(1).optional(),
    presence_penalty: z.number().min(-2).max(2).optional(),
    frequency_penalty: z.number().min(-2).max(2).optional(),
    stop: z.array(z.string().min(1)).min(1).max(4).optional(),
    seed: z.number().int().optional(),
  })
  .refine(({ messages }) => messages.some(({ role }) => role !== 'system' && role !== 'developer'), {
    path: ['messages'],
    error: 'expected at least one message of the user',
  });
type Input = z.infer<typeof Input>;

const ModelOutput = z.object({
  text: z.string().optional(),
  json: z.unknown().optional(),
  tool_calls: z.array(ToolCall).optional(),
  model: z.string(),
  finish_reason: z.enum(['stop', 'length', 'content_filter', 'tool_calls', 'other']),
  /** Null where the provider does not say. */
  usage: z.object({
    input_tokens: z.number().int().min(0).nullable(),
    output_tokens: z.number().int().min(0).nullable(),
  }),
  cost_usd: z.number().min(0).optional(),
});
type ModelOutput = z.infer<typeof ModelOutput>;

export function defineModel(settings: ModelSettings): Capability {
  const { MODEL_RATE_USD: rate_usd, MODEL_API_KEY: key } = settings;
  const model = createLanguageModel(settings);
  const hide = (text: string): string => (key === undefined ? text : text.replaceAll(key, '[key]'));

  const exec = async (input: Input, { signal, deadline, log, delta }: ExecContext): Promise<ModelOutput> => {
    const schema = input.response_schema as JsonObject | undefined;
    const readJson = schema === undefined ? null : createJsonReader(schema, hide);
    const limitMs = timeLimit(settings, deadline);
    const late = AbortSignal.timeout(limitMs);
    const question = toQuestion(settings, input, schema);
    requireCovered(settings, input, question.maxOutputTokens);
    const onDelta = (piece: AnswerDelta): void => {
      for (const part of cutDelta(piece)) delta(part);
    };
    const stop = AbortSignal.any([signal, late]);
    const answer = await askModel(model, question, { signal: stop, onDelta }).catch((error) => {
      signal.throwIfAborted();
      if (late.aborted) throw modelFailure('model_unavailable', `no whole answer within ${limitMs} ms`);
      throw explainProviderError(error, hide);
    });
    const content = readContent(answer, readJson);
    const cost_usd = costOf(settings, answer);
    if (cost_usd !== null && cost_usd > rate_usd) {
      log(`a call cost ${cost_usd} USD; only MODEL_RATE_USD, ${rate_usd}, is counted`);
    }
    return { ...content, ...describeAnswer(answer), ...(cost_usd === null ? {} : { cost_usd }) };
  };

  return defineCapability({ ...declare(settings), input: Input, output: ModelOutput, exec });
}

function declare(settings: ModelSettings) {
  const { MODEL_CAPABILITY: name, MODEL_RATE_USD: rate_usd, MODEL_NAME, MODEL_PROVIDER } = settings;
  return {
    name,
    version: '1.0.0',
    description: `Asks a language model (${MODEL_NAME}) and answers with text, or with JSON of a schema.`,
    cost_model: { type: rate_usd === 0 ? 'free' : 'per_call', rate_usd },
    settle: pricesOf(settings) === null ? 'computed' : 'reported',
    tags: ['model', MODEL_PROVIDER],
    max_concurrency: settings.MODEL_MAX_CONCURRENCY,
  } as const;
}

/** @throws CallFailure when the caller's deadline has passed */
function timeLimit({ MODEL_TIMEOUT_MS }: ModelSettings, deadline: Date | undefined): number {
  if (deadline === undefined) return MODEL_TIMEOUT_MS;
  const leftMs = deadline.getTime() - Date.now();
  if (leftMs > 0) return Math.min(MODEL_TIMEOUT_MS, leftMs);
  throw modelFailure('model_unavailable', 'the deadline of the call has passed');
}

/** A delta has at most 16 kB; a provider that does not stream writes all at once. */
function cutDelta(piece: AnswerDelta): readonly JsonObject[] {
  const { content } = piece;
  if (content === undefined) return [piece as unknown as JsonObject];
  return (content.match(/[\s\S]{1,1000}/gu) ?? []).map((part) => ({ content: part }));
}

/** @throws CallFailure `model_answer_invalid` */
function readContent(answer: ModelAnswer, readJson: JsonReader | null) {
  const { text, toolCalls } = answer;
  if (toolCalls.length > 0) return { ...(text === '' ? {} : { text }), tool_calls: [...toolCalls] };
  return readJson === null ? { text: readText(answer) } : { json: readJson(answer) };
}

function toQuestion(settings: ModelSettings, input: Input, schema: JsonObject | undefined): Question {
  const { MODEL_STRUCTURED_OUTPUT: way, MODEL_MAX_OUTPUT_TOKENS: limit } = settings;
  const system = systemOf(input.messages);
  const { tools = [], tool_choice: choice } = input;
  if (schema !== undefined && way !== 'json_schema') {
    system.push(`Answer with JSON only, which matches this JSON Schema:\n${JSON.stringify(schema)}`);
  }
  return {
    system: system.join('\n\n'),
    messages: toModelMessages(input.messages),
    tools: tools as readonly OfferedTool[],
    toolChoice: typeof choice === 'object' ? { type: 'tool', toolName: choice.name } : choice,
    json: schema === undefined || way === 'prompt' ? undefined : { schema },
    maxOutputTokens: Math.min(input.max_output_tokens ?? limit, limit),
    temperature: input.temperature,
    topP: input.top_p,
    presencePenalty: input.presence_penalty,
    frequencyPenalty: input.frequency_penalty,
    stopSequences: input.stop,
    seed: input.seed,
  };
}

/** @throws CallFailure `model_answer_invalid` when there is none */
function readText({ text, finishReason }: ModelAnswer): string {
  if (text !== '') return text;
  throw modelFailure('model_answer_invalid', `the answer is empty, finish_reason ${finishReason}`);
}

function describeAnswer({ model, finishReason, inputTokens, outputTokens }: ModelAnswer) {
  return {
    model,
    finish_reason: finishReasons[finishReason],
    usage: { input_tokens: inputTokens, output_tokens: outputTokens },
  };
}

const finishReasons = {
  stop: 'stop',
  length: 'length',
  'content-filter': 'content_filter',
  'tool-calls': 'tool_calls',
  error: 'other',
  other: 'other',
} as const satisfies Record<ModelAnswer['finishReason'], ModelOutput['finish_reason']>;

function pricesOf(settings: ModelSettings) {
  const { MODEL_USD_PER_MTOK_IN: input, MODEL_USD_PER_MTOK_OUT: output } = settings;
  return input === undefined || output === undefined || input + output === 0 ? null : { input, output };
}

/**
 * No tokenizer makes more tokens than the text has bytes: what could cost more than is reserved is not asked.
 * @throws CallFailure `model_rejected`
 */
function requireCovered(settings: ModelSettings, input: Input, maxOutputTokens: number): void {
  const prices = pricesOf(settings);
  if (prices === null) return;
  const others = JSON.stringify([input.response_schema ?? null, input.tools ?? null]);
  const tokens = mostTokens(input.messages, settings.MODEL_IMAGE_TOKENS) + Buffer.byteLength(others);
  const most = (tokens * prices.input + maxOutputTokens * prices.output) / 1e6;
  if (most <= settings.MODEL_RATE_USD) return;
  const sizes = `up to ${tokens} tokens of question and ${maxOutputTokens} tokens of answer`;
  const limit = `MODEL_RATE_USD is ${settings.MODEL_RATE_USD}`;
  throw modelFailure('model_rejected', `${sizes} may cost ${most.toFixed(6)} USD; ${limit}`);
}

/** USD, or null when it is not known; tokens from a cache count in full. */
function costOf(settings: ModelSettings, { inputTokens, outputTokens }: ModelAnswer): number | null {
  const prices = pricesOf(settings);
  if (prices === null || inputTokens === null || outputTokens === null) return null;
  return Number(((inputTokens * prices.input + outputTokens * prices.output) / 1e6).toFixed(12));
}
