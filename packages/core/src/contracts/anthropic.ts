/**
 * Anthropic's messages as far as Capstan serves them: programs that speak this protocol call capabilities named
 * `model.…` by changing their address and key. Source: the reference of the Messages API, version 2023-06-01.
 */
import { z } from 'zod';
import { EndUser, LookedUp } from './openai.ts';
import { Json, JsonObject } from './primitives.ts';

/** A field of Anthropic's answers that is null here. No type of its own: generators know no type `null`. */
const Absent = JsonObject.nullable();

/** Some libraries require the citations, and some refuse null. */
const TextBlock = z.object({ type: z.literal('text'), text: z.string(), citations: z.array(JsonObject) });

const ToolUseBlock = z.object({
  type: z.literal('tool_use'),
  id: z.string(),
  name: z.string(),
  input: JsonObject,
});

const ThinkingBlock = z.object({ type: z.literal('thinking'), thinking: z.string(), signature: z.string() });

/** Blocks are read by core/model-protocols: an instance that speaks the protocol gets them as they are. */
const Turn = z.looseObject({
  role: z.enum(['user', 'assistant', 'system']),
  content: z.union([z.string(), z.array(JsonObject)], { error: 'a text, or a list of blocks' }),
});
export type Turn = z.infer<typeof Turn>;

const MessagesTool = z.looseObject({
  type: z.string().nullish(),
  name: z.string().min(1).max(128),
  description: z.string().nullish(),
  input_schema: JsonObject.nullish(),
});
export type MessagesTool = z.infer<typeof MessagesTool>;

const MessagesToolChoice = z.looseObject({
  type: z.enum(['auto', 'any', 'none', 'tool']),
  name: z.string().optional(),
  disable_parallel_tool_use: z.boolean().nullish(),
});

const Format = z.looseObject({ type: z.string(), schema: JsonObject.optional() });

const askedOf = {
  model: LookedUp.min(1).max(128).meta({
    description: 'A capability `model.NAME`, with or without `model.`',
  }),
  messages: z.array(Turn).min(1),
  system: z.union([z.string(), z.array(JsonObject)]).nullish(),
  tools: z.array(MessagesTool).nullish(),
  tool_choice: MessagesToolChoice.nullish(),
};

/**
 * Body of `POST /anthropic/v1/messages`. The schema of the chosen instance checks the messages. Other fields are passed
 * on, translated, ignored or refused (docs/reference/model-fields.md).
 */
export const MessagesRequest = z
  .looseObject({
    ...askedOf,
    max_tokens: z.number().int().min(1),
    stream: z.boolean().nullish(),
    temperature: z.number().min(0).max(1).nullish(),
    top_p: z.number().min(0).max(1).nullish(),
    top_k: z.number().int().min(0).nullish(),
    stop_sequences: z.array(z.string().min(1)).nullish(),
    thinking: z.looseObject({ type: z.string(), budget_tokens: z.number().int().nullish() }).nullish(),
    output_config: z.looseObject({ format: Format.nullish(), effort: z.string().nullish() }).nullish(),
    output_format: Format.nullish(),
    metadata: z.looseObject({ user_id: EndUser }).nullish(),
  })
  .meta({ id: 'MessagesRequest' });
export type MessagesRequest = z.infer<typeof MessagesRequest>;

/** Body of `POST /anthropic/v1/messages/count_tokens`. */
export const CountTokensRequest = z.looseObject(askedOf).meta({ id: 'CountTokensRequest' });
export const CountedTokens = z
  .object({
    input_tokens: z.number().int().meta({ description: 'An estimate by the bytes of the request.' }),
  })
  .meta({ id: 'CountedTokens' });

/** A model in Anthropic's form. */
export const AnthropicModel = z
  .object({
    type: z.literal('model'),
    id: z.string(),
    display_name: z.string(),
    created_at: z.string(),
    max_input_tokens: z.number().int().nullable(),
    max_tokens: z.number().int().nullable(),
  })
  .meta({ id: 'AnthropicModel' });
export type AnthropicModel = z.infer<typeof AnthropicModel>;
export const AnthropicModelList = z
  .object({
    data: z.array(AnthropicModel),
    has_more: z.boolean(),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
  })
  .meta({ id: 'AnthropicModelList' });

export const AnthropicModelQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(1_000).default(20),
  after_id: z.string().max(128).optional(),
  before_id: z.string().max(128).optional(),
});

const stopReasons = ['end_turn', 'max_tokens', 'stop_sequence', 'tool_use', 'refusal'] as const;
export type MessageStop = (typeof stopReasons)[number];

/** Null: Capstan does not know them of any provider. */
const absentUsage = {
  cache_creation: Absent,
  server_tool_use: Absent,
  service_tier: z.string().nullable(),
  inference_geo: z.string().nullable(),
  output_tokens_details: Absent,
};

const MessageUsage = z.object({
  input_tokens: z.number().int(),
  output_tokens: z.number().int(),
  cache_creation_input_tokens: z.number().int(),
  cache_read_input_tokens: z.number().int(),
  ...absentUsage,
  cost_usd: z.number().meta({ description: 'What the call cost, USD. Anthropic has no such field.' }),
});
export type MessageUsage = z.infer<typeof MessageUsage>;

export const ModelMessage = z
  .object({
    id: z.string(),
    type: z.literal('message'),
    role: z.literal('assistant'),
    model: z.string().meta({ description: 'The model, as its provider names it.' }),
    content: z.array(z.union([TextBlock, ThinkingBlock, ToolUseBlock])),
    stop_reason: z.enum(stopReasons),
    stop_sequence: z.string().nullable().meta({
      description: 'The sequence that ended the answer; null: none did, or the model does not name it.',
    }),
    stop_details: Absent,
    container: Absent,
    context_management: Absent,
    usage: MessageUsage,
  })
  .meta({ id: 'ModelMessage' });
export type ModelMessage = z.infer<typeof ModelMessage>;

/** An error in Anthropic's form. */
export const AnthropicError = z
  .object({
    type: z.literal('error'),
    error: z
      .object({
        type: z.string(),
        message: z.string(),
        code: z.string().meta({
          description: "The code of the provider, else one of Capstan's error codes or `model_not_found`.",
        }),
        param: z.string().nullable().meta({ description: 'The field that is wrong.' }),
        details: Json.optional().meta({
          description:
            'Those of the provider. Of a refused `thread`, such as `thread_not_found`: libraries then send all messages instead.',
        }),
      })
      .catchall(Json),
  })
  .meta({ id: 'AnthropicError' });
export type AnthropicError = z.infer<typeof AnthropicError>;
