/**
 * The schemas of a model's input and output. Both have two forms, Capstan's own and the client's protocol; the field
 * `protocol` shows which. All fields are in one schema, where callers find the optional ones.
 */
import { NativeModelInput, NativeModelOutput } from '@capstan/core/contracts/model-protocol';
import type { Json } from '@capstan/core/contracts/primitives';
import type { z } from 'zod';
import { ModelInput, ModelOutput, ReasoningEffort } from './conversation.ts';

const nativeNeeds = ['protocol', 'request', 'most_input_tokens'] as const;
const outputNeeds = ['finish_reason', 'model', 'usage'] as const;
/** Each is a request to the provider, unless the provider itself gives several. */
const mostAnswers = 8;

function requireFields(names: readonly string[]) {
  return (value: object, context: z.RefinementCtx): void => {
    for (const name of names.filter((one) => Reflect.get(value, one) === undefined)) {
      context.addIssue({ code: 'custom', path: [name], message: 'is required' });
    }
  };
}

const { request, headers, most_input_tokens } = NativeModelInput.partial().shape;
const protocol = NativeModelInput.shape.protocol.optional();

function createChatInput<Extra extends z.ZodRawShape>(extra: Extra) {
  return ModelInput.partial({ messages: true })
    .extend({ protocol, request, headers, most_input_tokens, n: NativeModelInput.shape.n, ...extra })
    .superRefine((input, context) => {
      const { protocol: spoken, n = 1 } = input as { readonly protocol?: string; readonly n?: number };
      requireFields(spoken === undefined ? ['messages'] : nativeNeeds)(input, context);
      if (spoken === undefined && n > mostAnswers) {
        context.addIssue({ code: 'custom', path: ['n'], message: `is at most ${mostAnswers}` });
      }
    })
    .meta({
      if: { required: ['protocol'] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { required: nativeNeeds },
      else: { required: ['messages'], properties: { n: { maximum: mostAnswers } } },
    });
}

export const ChatInput = createChatInput({});
/** Of a model that takes an effort. */
export const ThinkingChatInput = createChatInput({ reasoning_effort: ReasoningEffort.optional() });

export const ChatOutput = ModelOutput.partial()
  .extend({ protocol, response: NativeModelOutput.shape.response })
  .superRefine((output, context) => {
    if (output.protocol === undefined) requireFields(outputNeeds)(output, context);
  })
  .meta({ if: { required: ['protocol'] }, else: { required: outputNeeds } });

export function isNativeInput(input: Json | undefined): boolean {
  return Reflect.get(Object(input), 'protocol') !== undefined;
}
