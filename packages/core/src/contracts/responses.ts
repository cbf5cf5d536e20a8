/**
 * OpenAI's responses as far as Capstan serves them, over models that answer chats. Source: the reference of the Responses
 * API, 2026.
 */
import { z } from 'zod';
import { EndUser, LookedUp } from './openai.ts';
import { JsonObject } from './primitives.ts';

/** Tools of other types than these are hosted by the provider. */
const ResponsesTool = z.looseObject({
  type: z.string(),
  name: z.string().min(1).max(128).optional(),
  description: z.string().nullish(),
  parameters: JsonObject.nullish(),
});

const ResponsesToolChoice = z.union([
  z.enum(['auto', 'none', 'required']),
  z.looseObject({
    type: z.string(),
    name: z.string().optional(),
    mode: z.enum(['auto', 'required']).optional(),
    tools: z.array(z.looseObject({ name: z.string().optional() })).optional(),
  }),
]);

const TextFormat = z.looseObject({ type: z.string(), schema: JsonObject.optional() });

/** Body of `POST /openai/v1/responses`. Other fields: docs/reference/model-fields.md. */
export const ResponsesRequest = z
  .looseObject({
    model: LookedUp.min(1).max(128).meta({
      description: 'A capability `model.NAME`, with or without `model.`, or an alias of the project',
    }),
    input: z.union([z.string(), z.array(JsonObject)], { error: 'a text, or a list of items' }).nullish(),
    instructions: z.string().nullish(),
    previous_response_id: LookedUp.max(256).nullish().meta({
      description: 'A stored response, whose conversation the input continues.',
    }),
    store: z.boolean().nullish().meta({
      description: 'Whether the conversation is kept for `previous_response_id`. Default: true.',
    }),
    stream: z.boolean().nullish(),
    max_output_tokens: z.number().int().min(1).nullish(),
    temperature: z.number().min(0).max(2).nullish(),
    top_p: z.number().min(0).max(1).nullish(),
    reasoning: z.looseObject({ effort: z.string().nullish() }).nullish(),
    text: z.looseObject({ format: TextFormat.nullish(), verbosity: z.string().nullish() }).nullish(),
    tools: z.array(ResponsesTool).nullish(),
    tool_choice: ResponsesToolChoice.nullish(),
    parallel_tool_calls: z.boolean().nullish(),
    user: EndUser,
  })
  .meta({ id: 'ResponsesRequest' });
export type ResponsesRequest = z.infer<typeof ResponsesRequest>;

/** A response; its other fields repeat the request. */
export const ModelResponse = z
  .looseObject({
    id: z.string(),
    object: z.literal('response'),
    created_at: z.number().int(),
    status: z.enum(['completed', 'incomplete', 'in_progress', 'failed']),
    model: z.string(),
    output: z.array(JsonObject),
  })
  .meta({ id: 'ModelResponse' });
export type ModelResponse = z.infer<typeof ModelResponse>;

export const ResponseDeleted = z
  .object({ id: z.string(), object: z.literal('response'), deleted: z.literal(true) })
  .meta({ id: 'ResponseDeleted' });
