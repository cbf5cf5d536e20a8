/** A model level as a capability: stateless, one question to one provider per call, money as the provider counts it. */
import { setMaxListeners } from 'node:events';
import { type Capability, defineCapability, type ExecContext } from '@capstan/capability';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { z } from 'zod';
import type { AnswerDelta, ModelAnswer, OfferedTool, Question } from './ask-model.ts';
import type { ModelSettings } from './configuration.ts';
import { modelFailure } from './faults.ts';
import { createJsonReader, type JsonReader } from './json-answer.ts';
import { Message, mostTokens, systemOf, ToolCall } from './messages.ts';
import { createAsk } from './provider.ts';
import {
  askInTime,
  type CountedTokens,
  costField,
  declareTerms,
  hideKey,
  requireCovered,
  requireRateFor,
} from './terms.ts';

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
    n: z.number().int().min(1).max(8).optional().meta({
      description: 'Answers; more than one are `choices` of the output. Each is a request to the provider.',
    }),
  })
  .refine(({ messages }) => messages.some(({ role }) => role !== 'system' && role !== 'developer'), {
    path: ['messages'],
    error: 'expected at least one message of the user',
  });
type Input = z.infer<typeof Input>;

const AnswerChoice = z.object({
  text: z.string().optional(),
  json: z.unknown().optional(),
  tool_calls: z.array(ToolCall).optional(),
  finish_reason: z.enum(['stop', 'length', 'content_filter', 'tool_calls', 'other']),
  stop_sequence: z.string().optional().meta({
    description: 'The text of `stop` that ended the answer; only of providers that say it.',
  }),
});
type AnswerChoice = z.infer<typeof AnswerChoice>;

const ModelOutput = AnswerChoice.extend({
  choices: z.array(AnswerChoice).optional().meta({
    description: 'The answers, where `n` asks for several; the fields beside it are those of the first.',
  }),
  model: z.string(),
  /** Null where the provider does not report it. */
  usage: z.object({
    input_tokens: z.number().int().min(0).nullable(),
    output_tokens: z.number().int().min(0).nullable(),
  }),
  cost_usd: z.number().min(0).optional(),
});
type ModelOutput = z.infer<typeof ModelOutput>;

export function defineModel(settings: ModelSettings): Capability {
  const ask = createAsk(settings);
  const exec = async (input: Input, context: ExecContext): Promise<ModelOutput> => {
    const schema = input.response_schema as JsonObject | undefined;
    const readJson = schema === undefined ? null : createJsonReader(schema, hideKey(settings));
    const question = toQuestion(settings, input, schema);
    const { n = 1 } = input;
    requireRateFor(settings, n);
    requireCovered(settings, n * countTokens(settings, input), n * question.maxOutputTokens);
    const onDelta = (piece: AnswerDelta, index: number): void => {
      for (const part of cutDelta(piece)) context.delta(n === 1 ? part : { index, ...part });
    };
    const answers = await askInTime(settings, context, (signal) =>
      askTimes(n, signal, (stop, index) =>
        ask(question, { signal: stop, onDelta: (piece) => onDelta(piece, index) }),
      ),
    );
    const choices = answers.map((answer) => readChoice(answer, readJson));
    return { ...describeAnswers(choices, answers), ...costField(settings, countAll(answers), context.log) };
  };
  const description = `Asks a language model (${settings.MODEL_NAME}) and answers with text, or with JSON of a schema.`;
  return defineCapability({
    ...declareTerms(settings),
    description,
    input: Input,
    output: ModelOutput,
    exec,
  });
}

/** Asks so many times at once; when one fails, the others are stopped. */
async function askTimes<Answer>(
  times: number,
  signal: AbortSignal,
  ask: (stop: AbortSignal, index: number) => Promise<Answer>,
): Promise<Answer[]> {
  if (times === 1) return [await ask(signal, 0)];
  const left = new AbortController();
  const stop = AbortSignal.any([signal, left.signal]);
  setMaxListeners(0, stop);
  try {
    return await Promise.all(Array.from({ length: times }, (_, index) => ask(stop, index)));
  } finally {
    left.abort();
  }
}

/** The most tokens that the question can count. */
function countTokens({ MODEL_IMAGE_TOKENS }: ModelSettings, input: Input): number {
  const others = JSON.stringify([input.response_schema ?? null, input.tools ?? null]);
  return mostTokens(input.messages, MODEL_IMAGE_TOKENS) + Buffer.byteLength(others);
}

/** A delta has at most 16 kB; a provider that does not stream writes all at once. */
function cutDelta(piece: AnswerDelta): readonly JsonObject[] {
  const { content } = piece;
  if (content === undefined || content.length <= 1_000) return [piece as unknown as JsonObject];
  return (content.match(/[\s\S]{1,1000}/gu) ?? []).map((part) => ({ content: part }));
}

/** @throws CallFailure `model_answer_invalid` */
function readChoice(answer: ModelAnswer, readJson: JsonReader | null): AnswerChoice {
  const { stopSequence } = answer;
  return {
    ...readContent(answer, readJson),
    finish_reason: finishReasons[answer.finishReason],
    ...(stopSequence === null ? {} : { stop_sequence: stopSequence }),
  };
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
    messages: input.messages,
    tools: tools as readonly OfferedTool[],
    toolChoice: choice,
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

function sumKnown(counts: readonly (number | null)[]): number | null {
  return counts.reduce((sum, count) => (sum === null || count === null ? null : sum + count), 0);
}

/** The tokens of all answers; null where the provider does not report them. */
function countAll(answers: readonly ModelAnswer[]): CountedTokens {
  return {
    inputTokens: sumKnown(answers.map(({ inputTokens }) => inputTokens)),
    outputTokens: sumKnown(answers.map(({ outputTokens }) => outputTokens)),
  };
}

function describeAnswers(choices: readonly AnswerChoice[], answers: readonly ModelAnswer[]) {
  const [first, ...others] = choices as readonly [AnswerChoice, ...AnswerChoice[]];
  const { inputTokens, outputTokens } = countAll(answers);
  return {
    ...first,
    ...(others.length === 0 ? {} : { choices: [...choices] }),
    model: answers[0]?.model ?? '',
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
