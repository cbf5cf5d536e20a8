/**
 * A call of `model.…` in the protocol that its client speaks: the request travels as it came and the answer as it goes.
 * The spec of an instance lists the protocols that it speaks. docs/write-a-capability.md describes the contract.
 */
import { z } from 'zod';

export const ClientProtocol = z
  .enum(['openai.chat', 'openai.responses', 'anthropic.messages'])
  .meta({ id: 'ClientProtocol' });
export type ClientProtocol = z.infer<typeof ClientProtocol>;

/** Headers of the client that its provider reads too. */
export const passedHeaders = ['anthropic-version', 'anthropic-beta', 'openai-beta'] as const;

/** The input that an instance receives in place of the neutral one. */
export const NativeModelInput = z
  .strictObject({
    protocol: ClientProtocol,
    request: z.string().meta({
      description: "The client's body, as it came: JSON, in which the instance replaces the model.",
    }),
    headers: z
      .partialRecord(z.enum(passedHeaders), z.string())
      .optional()
      .meta({ description: 'Headers of the client for the provider, with names in lower case.' }),
    max_output_tokens: z.number().int().min(1).optional().meta({
      description: 'The limit of the answer that the request states; absent: it states none.',
    }),
    n: z.number().int().min(1).optional().meta({ description: 'Answers that it asks for; absent: one.' }),
    most_input_tokens: z.number().int().min(0).meta({
      description:
        'The most tokens that the request can count, by the rule of the filter `tokens`, with what a model adds to it.',
    }),
  })
  .meta({ id: 'NativeModelInput' });
export type NativeModelInput = z.infer<typeof NativeModelInput>;

/** Tokens that a model, or its provider, adds to a question: with a schema for its answer, and with tools. */
export const addedTokens = { schema: 40, tools: 600 } as const;

const count = z.number().min(0).nullish();

/** The output of such a call. */
export const NativeModelOutput = z
  .object({
    protocol: ClientProtocol,
    response: z.string().optional().meta({
      description: "The provider's body, as it came; absent: it was passed on as parts.",
    }),
    model: z.string().optional().meta({ description: 'The model, as its provider names it.' }),
    usage: z.object({ input_tokens: count, output_tokens: count }).nullish(),
    cost_usd: z.number().min(0).optional(),
  })
  .meta({ id: 'NativeModelOutput' });
export type NativeModelOutput = z.infer<typeof NativeModelOutput>;

/** A part of a streamed answer: text of the provider's event stream, which may be cut anywhere between characters. */
export const NativeModelPart = z.object({ events: z.string() }).meta({ id: 'NativeModelPart' });
export type NativeModelPart = z.infer<typeof NativeModelPart>;
