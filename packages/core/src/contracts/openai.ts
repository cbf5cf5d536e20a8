/**
 * OpenAI's chat completions as far as Capstan serves them: programs that speak this protocol call capabilities named
 * `model.…` by changing their address and key. Source: the reference of the Chat Completions API, 2025.
 */
import { z } from 'zod';
import { AnswerCache } from './cache.ts';
import { CallOnBudget } from './decision.ts';
import { Json, JsonObject, Priority, Tags, Usd } from './primitives.ts';

/** Fields that are not read may hold anything: core/model-protocols/fields.ts lists their treatment. */
const ChatTool = z.looseObject({
  type: z.string(),
  function: z
    .looseObject({
      name: z.string().min(1).max(128),
      description: z.string().nullish(),
      parameters: JsonObject.nullish(),
    })
    .optional(),
});
export type ChatTool = z.infer<typeof ChatTool>;

const NamedTool = z.looseObject({ name: z.string() }).optional();

const ToolChoice = z.union([
  z.enum(['auto', 'none', 'required']),
  z.looseObject({
    type: z.string(),
    function: NamedTool,
    allowed_tools: z
      .looseObject({
        mode: z.enum(['auto', 'required']),
        tools: z.array(z.looseObject({ function: NamedTool })),
      })
      .optional(),
  }),
]);

const ResponseFormat = z.looseObject({
  type: z.enum(['text', 'json_object', 'json_schema']),
  json_schema: JsonObject.optional(),
});

function between(least: number, most: number) {
  return z.number().min(least).max(most).nullish();
}
/** -1 is how some programs write that there is no limit. */
const tokens = z
  .union([z.number().int().min(1), z.literal(-1)], { error: 'a number of tokens from 1, or -1 for no limit' })
  .nullish();

/** A text that Capstan looks up, in a body whose characters may be any. */
export const LookedUp = z.string().refine((text) => !text.includes('\0'), { error: 'a text without NUL' });

/** The user of the calling program, for budgets and costs; instances do not receive it. */
export const EndUser = LookedUp.max(256).nullish().meta({
  description: 'Whose call it is, for budgets and costs of `user:ID`. The model does not receive it.',
});

/**
 * Body of `POST /openai/v1/chat/completions`. The schema of the chosen instance checks the messages. Other fields are
 * passed on, translated, ignored or refused (docs/reference/model-fields.md).
 */
export const ChatRequest = z
  .looseObject({
    model: LookedUp.min(1).max(128).meta({
      description: 'A capability `model.NAME`, with or without `model.`, or an alias of the project',
    }),
    messages: z.array(JsonObject).min(1),
    stream: z.boolean().nullish(),
    stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
    max_tokens: tokens,
    max_completion_tokens: tokens,
    temperature: between(0, 2),
    top_p: between(0, 1),
    presence_penalty: between(-2, 2),
    frequency_penalty: between(-2, 2),
    stop: z.union([z.string(), z.array(z.string())]).nullish(),
    seed: z.number().nullish(),
    n: z.number().int().min(1).max(8).nullish().meta({
      description: 'Answers to choose from; they are one call with one cost.',
    }),
    response_format: ResponseFormat.nullish(),
    tools: z.array(ChatTool).nullish(),
    tool_choice: ToolChoice.nullish(),
    user: EndUser,
  })
  .meta({ id: 'ChatRequest' });
export type ChatRequest = z.infer<typeof ChatRequest>;

const seconds = z.coerce.number().min(0.1).max(86_400);

/** Options of Capstan, in headers, since the body is OpenAI's. */
export const ChatHeaders = z.object({
  'x-capstan-ceiling-usd': z.coerce.number().pipe(Usd).optional().meta({
    description: 'The most that the call may cost, USD.',
  }),
  'x-capstan-cache': z.coerce.number().pipe(AnswerCache.shape.ttl_seconds).optional().meta({
    description:
      'Seconds for which an equal call of the project gets the same answer, at no cost. The answer has the same header: `hit` or `miss`; not with `stream`.',
  }),
  'x-capstan-on-budget': CallOnBudget.optional().meta({
    description:
      'The end of the call when its budgets have no more room. stop: its answer ends there, as one that reached its limit of length. refuse: it begins only if the most that it may cost has room. Default stop for a stream, else refuse.',
  }),
  'x-capstan-priority': Priority.optional(),
  'x-capstan-tags': z
    .string()
    .transform((text) => text.split(',').map((tag) => tag.trim()))
    .pipe(Tags)
    .optional()
    .meta({ description: 'Tags that the instance must have, separated by commas.' }),
  'x-capstan-affinity': z.string().min(1).max(1_024).optional().meta({
    description:
      'The session of the call: calls with the same text go to an instance that has its prompt in a cache, if that is sooner. Default: `prompt_cache_key` of the body, else the key that the model declares.',
  }),
  'x-capstan-keep-alive': seconds.optional().meta({
    description:
      'Seconds of silence after which a stream gets bytes that programs skip. They begin the answer, so that a later error has no status of its own.',
  }),
  'x-capstan-idle-timeout': seconds.optional().meta({
    description: 'The most seconds between two parts of a stream. Default: only `X-Capstan-Timeout` counts.',
  }),
  'x-capstan-timeout': seconds.optional().meta({
    description: 'The most seconds for the whole answer. Default: 600.',
  }),
  'x-capstan-strict': z.stringbool().optional().meta({
    description:
      'True: a request of which a field would be left out is refused, with the name of the field. Otherwise the header `X-Capstan-Dropped` of the answer names such fields.',
  }),
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
  prompt_tokens_details: z.object({ cached_tokens: z.number().int() }).optional(),
  completion_tokens_details: z.object({ reasoning_tokens: z.number().int() }).optional(),
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
          refusal: z.string().nullable(),
          reasoning_content: z.string().optional().meta({
            description: 'What the model thought before, as far as its provider shows it.',
          }),
          tool_calls: z.array(ToolCall).optional(),
        }),
        logprobs: JsonObject.nullable(),
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
    model: LookedUp.min(1).max(128).meta({
      description: 'A capability `embed.NAME`, with or without `embed.`, or an alias of the project',
    }),
    input: z.union([z.string().min(1), z.array(z.string().min(1)).min(1).max(2_048)], {
      error: 'a text, or 1 to 2,048 texts; tokens are not served',
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
    error: z
      .object({
        message: z.string(),
        type: z.string(),
        param: z.string().nullable().meta({ description: 'The field that is wrong.' }),
        code: z.string().meta({
          description:
            "The code of the provider, else one of Capstan's error codes, `model_not_found` or `previous_response_not_found`.",
        }),
      })
      .catchall(Json),
  })
  .meta({ id: 'OpenAiError' });
export type OpenAiError = z.infer<typeof OpenAiError>;

const count = z.number().nullish();

const ModelChoice = z.object({
  text: z.string().optional(),
  /** What the model thought before it answered, as far as its provider shows it. */
  reasoning: z.string().optional(),
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
  usage: z
    .object({
      input_tokens: count,
      output_tokens: count,
      /** Parts of the first. */
      cached_read_tokens: count,
      cached_write_tokens: count,
      /** A part of the second. */
      reasoning_tokens: count,
    })
    .nullish(),
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
