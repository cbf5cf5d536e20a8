/**
 * Anthropic's messages as far as Capstan serves them: programs that speak this protocol call capabilities named
 * `model.…` by changing their address and key. Source: the reference of the Messages API, version 2023-06-01.
 */
import { z } from 'zod';
import { EndUser } from './openai.ts';
import { JsonObject } from './primitives.ts';

// Blocks may hold more than what is read, such as `cache_control` and `citations`.

const TextBlock = z.object({ type: z.literal('text'), text: z.string() });
export type TextBlock = z.infer<typeof TextBlock>;

const ImageBlock = z.object({
  type: z.literal('image'),
  source: z.union([
    z.object({ type: z.literal('base64'), media_type: z.string(), data: z.string() }),
    z.object({ type: z.literal('url'), url: z.string() }),
  ]),
});

const DocumentBlock = z.object({
  type: z.literal('document'),
  source: z.union([
    z.object({ type: z.literal('base64'), media_type: z.string(), data: z.string() }),
    z.object({ type: z.literal('text'), media_type: z.string(), data: z.string() }),
  ]),
  title: z.string().nullish(),
});

const PartBlock = z.union([TextBlock, ImageBlock, DocumentBlock]);
export type PartBlock = z.infer<typeof PartBlock>;

const ToolResultBlock = z.object({
  type: z.literal('tool_result'),
  tool_use_id: z.string(),
  content: z.union([z.string(), z.array(PartBlock)]).optional(),
  is_error: z.boolean().optional(),
});
export type ToolResultBlock = z.infer<typeof ToolResultBlock>;

const ToolUseBlock = z.object({
  type: z.literal('tool_use'),
  id: z.string(),
  name: z.string(),
  input: JsonObject,
});
export type ToolUseBlock = z.infer<typeof ToolUseBlock>;

/** Thoughts of an earlier answer of another model. */
const ThoughtBlock = z.object({ type: z.enum(['thinking', 'redacted_thinking']) });

const UserTurn = z.object({
  role: z.literal('user'),
  content: z.union([z.string(), z.array(z.union([PartBlock, ToolResultBlock])).min(1)]),
});
const AssistantTurn = z.object({
  role: z.literal('assistant'),
  content: z.union([z.string(), z.array(z.union([TextBlock, ToolUseBlock, ThoughtBlock]))]),
});
const SystemTurn = z.object({
  role: z.literal('system'),
  content: z.union([z.string(), z.array(TextBlock)]),
});

const Turn = z.union([UserTurn, AssistantTurn, SystemTurn], {
  error:
    'expected a text, or blocks: of the user text, image, document (base64 or text) and tool_result; of the assistant text and tool_use',
});
export type Turn = z.infer<typeof Turn>;

const MessagesTool = z.object({
  type: z.literal('custom', { error: 'tools that the provider executes are not served' }).nullish(),
  name: z.string().regex(/^[\w-]{1,64}$/, { error: '1 to 64 letters, digits, _ or -' }),
  description: z.string().optional(),
  input_schema: JsonObject,
});

const MessagesToolChoice = z.union([
  z.object({ type: z.enum(['auto', 'any', 'none']) }),
  z.object({ type: z.literal('tool'), name: z.string() }),
]);

const ignored = z.unknown().optional().meta({ description: 'Ignored.' });

/** Body of `POST /anthropic/v1/messages`. The schema of the chosen instance checks the messages. */
export const MessagesRequest = z
  .strictObject({
    model: z.string().min(1).max(128).meta({
      description: 'A capability `model.NAME`, with or without `model.`',
    }),
    max_tokens: z.number().int().min(1),
    messages: z.array(Turn).min(1).max(1_000),
    system: z.union([z.string(), z.array(TextBlock)]).optional(),
    stream: z.boolean().nullish(),
    temperature: z.number().min(0).max(1).nullish(),
    top_p: z.number().min(0).max(1).nullish(),
    stop_sequences: z.array(z.string().min(1)).nullish(),
    tools: z.array(MessagesTool).max(128).nullish(),
    tool_choice: MessagesToolChoice.nullish(),
    thinking: z
      .object({ type: z.literal('disabled', { error: 'thinking is not served; allowed is disabled' }) })
      .nullish(),
    output_config: z
      .strictObject({
        format: z.object({ type: z.literal('json_schema'), schema: JsonObject }).nullish(),
      })
      .nullish(),
    metadata: z.looseObject({ user_id: EndUser }).nullish(),
    service_tier: ignored,
    cache_control: ignored,
    inference_geo: ignored,
  })
  .meta({ id: 'MessagesRequest' });
export type MessagesRequest = z.infer<typeof MessagesRequest>;

const stopReasons = ['end_turn', 'max_tokens', 'stop_sequence', 'tool_use', 'refusal'] as const;
export type MessageStop = (typeof stopReasons)[number];

const MessageUsage = z.object({
  input_tokens: z.number().int(),
  output_tokens: z.number().int(),
  cost_usd: z.number().meta({ description: 'What the call cost, USD. Anthropic has no such field.' }),
});
export type MessageUsage = z.infer<typeof MessageUsage>;

export const ModelMessage = z
  .object({
    id: z.string(),
    type: z.literal('message'),
    role: z.literal('assistant'),
    model: z.string().meta({ description: 'The model, as its provider names it.' }),
    content: z.array(z.union([TextBlock, ToolUseBlock])),
    stop_reason: z.enum(stopReasons),
    stop_sequence: z.string().nullable().meta({
      description: 'The sequence that ended the answer; null: none did, or the model does not name it.',
    }),
    usage: MessageUsage,
  })
  .meta({ id: 'ModelMessage' });
export type ModelMessage = z.infer<typeof ModelMessage>;

/** An error in Anthropic's form. */
export const AnthropicError = z
  .object({
    type: z.literal('error'),
    error: z.object({
      type: z.string(),
      message: z.string(),
      code: z.string().meta({ description: "One of Capstan's error codes, or `model_not_found`." }),
      param: z.string().nullable().meta({ description: 'The field that is wrong.' }),
    }),
  })
  .meta({ id: 'AnthropicError' });
export type AnthropicError = z.infer<typeof AnthropicError>;
