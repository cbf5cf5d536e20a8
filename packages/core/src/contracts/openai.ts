/**
 * OpenAI's chat completions as far as Capstan serves them: programs that speak this protocol call capabilities named
 * `model.…` by changing their address and key. Source: the reference of the Chat Completions API, 2025.
 */
import { z } from 'zod';
import { AnswerCache } from './cache.ts';
import { JsonObject, Priority, Tags, Usd } from './primitives.ts';

const ToolName = z.string().regex(/^[\w-]{1,64}$/, { error: '1 to 64 letters, digits, _ or -' });

const ChatTool = z.strictObject({
  type: z.literal('function'),
  function: z.strictObject({
    name: ToolName,
    description: z.string().optional(),
    parameters: JsonObject.optional(),
    strict: z.boolean().nullish(),
  }),
});

const ToolChoice = z.union([
  z.enum(['auto', 'none', 'required']),
  z.strictObject({ type: z.literal('function'), function: z.strictObject({ name: ToolName }) }),
]);

const ResponseFormat = z.union([
  z.strictObject({ type: z.literal('text') }),
  z.strictObject({ type: z.literal('json_object') }),
  z.strictObject({
    type: z.literal('json_schema'),
    json_schema: z.strictObject({
      name: z.string(),
      description: z.string().optional(),
      schema: JsonObject,
      strict: z.boolean().nullish(),
    }),
  }),
]);

function between(least: number, most: number) {
  return z.number().min(least).max(most).nullish();
}
const tokens = z.number().int().min(1).nullish();

/** Fields that change who is asked or what is kept, but not the answer. Capstan ignores them. */
const ignored = z.unknown().optional().meta({ description: 'Ignored.' });

/** The user of the calling program, for budgets and costs; instances do not receive it. */
export const EndUser = z.string().max(256).nullish().meta({
  description: 'Whose call it is, for budgets and costs of `user:ID`. The model does not receive it.',
});

/** Body of `POST /openai/v1/chat/completions`. The schema of the chosen instance checks the messages. */
export const ChatRequest = z
  .strictObject({
    model: z.string().min(1).max(128).meta({
      description: 'A capability `model.NAME`, with or without `model.`, or an alias of the project',
    }),
    messages: z.array(JsonObject).min(1),
    stream: z.boolean().nullish(),
    stream_options: z
      .strictObject({ include_usage: z.boolean().optional(), include_obfuscation: z.boolean().optional() })
      .nullish(),
    max_tokens: tokens,
    max_completion_tokens: tokens,
    temperature: between(0, 2),
    top_p: between(0, 1),
    presence_penalty: between(-2, 2),
    frequency_penalty: between(-2, 2),
    stop: z.union([z.string().min(1), z.array(z.string().min(1)).min(1).max(4)]).nullish(),
    seed: z.number().int().nullish(),
    n: z.number().int().min(1).max(8).nullish().meta({
      description: 'Answers to choose from; they are one call with one cost.',
    }),
    response_format: ResponseFormat.optional(),
    tools: z.array(ChatTool).optional(),
    tool_choice: ToolChoice.optional(),
    logprobs: z.literal(false, { error: 'log probabilities are not served' }).nullish(),
    user: EndUser,
    metadata: ignored,
    store: ignored,
    service_tier: ignored,
    parallel_tool_calls: ignored,
    prompt_cache_key: ignored,
    safety_identifier: ignored,
  })
  .meta({ id: 'ChatRequest' });
export type ChatRequest = z.infer<typeof ChatRequest>;

/** Options of Capstan, in headers, since the body is OpenAI's. */
export const ChatHeaders = z.object({
  'x-capstan-ceiling-usd': z.coerce.number().pipe(Usd).optional().meta({
    description: 'The most that the call may cost, USD.',
  }),
  'x-capstan-cache': z.coerce.number().pipe(AnswerCache.shape.ttl_seconds).optional().meta({
    description:
      'Seconds for which an equal call of the project gets the same answer, at no cost. The answer has the same header: `hit` or `miss`; not with `stream`.',
  }),
  'x-capstan-priority': Priority.optional(),
  'x-capstan-tags': z
    .string()
    .transform((text) => text.split(',').map((tag) => tag.trim()))
    .pipe(Tags)
    .optional()
    .meta({ description: 'Tags that the instance must have, separated by commas.' }),
});
export type ChatHeaders = z.output<typeof ChatHeaders>;

const ToolCall = z.object({
  id: z.string(),
  type: z.literal('function'),
  function: z.object({ name: z.string(), arguments: z.string() }),
});

const finishReasons = ['stop', 'length', 'content_filter', 'tool_calls'] as const;
export type FinishReason = (typeof finishReasons)[number];

const Usage = z.object({
  prompt_tokens: z.number().int(),
  completion_tokens: z.number().int(),
  total_tokens: z.number().int(),
  cost_usd: z.number().meta({ description: 'What the call cost, USD. OpenAI has no such field.' }),
});
export type ChatUsage = z.infer<typeof Usage>;

export const ChatCompletion = z
  .object({
    id: z.string(),
    object: z.literal('chat.completion'),
    created: z.number().int(),
    model: z.string().meta({ description: 'The model, as its provider names it.' }),
    choices: z.array(
      z.object({
        index: z.number().int(),
        message: z.object({
          role: z.literal('assistant'),
          content: z.string().nullable(),
          refusal: z.null(),
          tool_calls: z.array(ToolCall).optional(),
        }),
        logprobs: z.null(),
        finish_reason: z.enum(finishReasons),
      }),
    ),
    usage: Usage,
  })
  .meta({ id: 'ChatCompletion' });
export type ChatCompletion = z.infer<typeof ChatCompletion>;

/** Body of `POST /openai/v1/embeddings`. */
export const EmbeddingsRequest = z
  .strictObject({
    model: z.string().min(1).max(128).meta({
      description: 'A capability `embed.NAME`, with or without `embed.`, or an alias of the project',
    }),
    input: z.union([z.string().min(1), z.array(z.string().min(1)).min(1).max(1_000)], {
      error: 'a text, or 1 to 1,000 texts; tokens are not served',
    }),
    dimensions: z.number().int().min(1).nullish(),
    encoding_format: z.enum(['float', 'base64']).nullish(),
    user: EndUser,
  })
  .meta({ id: 'EmbeddingsRequest' });
export type EmbeddingsRequest = z.infer<typeof EmbeddingsRequest>;

export const EmbeddingsAnswer = z
  .object({
    object: z.literal('list'),
    data: z.array(
      z.object({
        object: z.literal('embedding'),
        index: z.number().int(),
        embedding: z.union([z.array(z.number()), z.string()]).meta({
          description: 'Numbers, or with `encoding_format: base64` their 32-bit floats, little-endian.',
        }),
      }),
    ),
    model: z.string(),
    usage: z.object({
      prompt_tokens: z.number().int(),
      total_tokens: z.number().int(),
      cost_usd: z.number(),
    }),
  })
  .meta({ id: 'Embeddings' });
export type EmbeddingsAnswer = z.infer<typeof EmbeddingsAnswer>;

/** The result of a call of `embed.…`, as far as it is read. */
export const EmbeddingResult = z.object({
  /** 32-bit floats, little-endian, in base64. */
  embeddings: z.array(z.string()),
  model: z.string().optional(),
  usage: z.object({ input_tokens: z.number().nullish() }).nullish(),
});
export type EmbeddingResult = z.infer<typeof EmbeddingResult>;

/** An error in OpenAI's form. */
export const OpenAiError = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.string(),
      param: z.string().nullable().meta({ description: 'The field that is wrong.' }),
      code: z.string().meta({ description: "One of Capstan's error codes, or `model_not_found`." }),
    }),
  })
  .meta({ id: 'OpenAiError' });
export type OpenAiError = z.infer<typeof OpenAiError>;

const ModelChoice = z.object({
  text: z.string().optional(),
  json: z.unknown().optional(),
  tool_calls: z.array(ToolCall).optional(),
  finish_reason: z.string().optional(),
  /** The text of `stop` that ended the answer, if the model reports it. */
  stop_sequence: z.string().nullish(),
});
export type ModelChoice = z.infer<typeof ModelChoice>;

/** The result of a call of `model.…`, as far as it is read. Wrapped models answer it. */
export const ModelResult = ModelChoice.extend({
  /** The answers of a call that asked for several. */
  choices: z.array(ModelChoice).optional(),
  model: z.string().optional(),
  usage: z.object({ input_tokens: z.number().nullish(), output_tokens: z.number().nullish() }).nullish(),
});
export type ModelResult = z.infer<typeof ModelResult>;

export const Model = z
  .object({
    id: z.string(),
    object: z.literal('model'),
    created: z.number().int().meta({ description: 'Seconds since 1970.' }),
    owned_by: z.literal('capstan'),
    capability: z.string().meta({ description: 'The capability that requests with this id call.' }),
    instances_up: z.number().int().meta({ description: 'Instances that may take a call now.' }),
    rate_usd: z.number().nullable().meta({
      description: 'The lowest price of a call among these instances, USD; null: none is up.',
    }),
  })
  .meta({ id: 'Model' });
export type Model = z.infer<typeof Model>;
export const ModelList = z
  .object({ object: z.literal('list'), data: z.array(Model) })
  .meta({ id: 'ModelList' });
