/** Kind `anthropic`: a chat by Anthropic's messages, as a capability `model.…`. */
import { z } from 'zod';
import { createAnthropicMessages } from '../models/anthropic-messages.ts';
import { prepareChat } from '../models/chat.ts';
import { Budgets, chatFields, Efforts } from '../models/model-part.ts';
import { askedCache } from '../models/money/prices.ts';
import { defineKind } from '../wrap-kind.ts';

const AnthropicPart = z.strictObject({
  ...chatFields,
  base_url: chatFields.base_url.default('https://api.anthropic.com/v1'),
  structured_output: z.enum(['json_schema', 'prompt']).default('json_schema'),
  reasoning_effort: z.union([Efforts, Budgets]).optional(),
  protocols: z.array(z.literal('anthropic.messages')).default(['anthropic.messages']),
});

const rules = { limitFields: ['max_tokens'], asksForUsage: false, conversation: 'messages' } as const;

export const anthropic = defineKind({
  shape: AnthropicPart,
  prepare: (part, host) => {
    const protocol = createAnthropicMessages(part);
    const spoken = Object.fromEntries(part.protocols.map((name) => [name, { ...protocol, ...rules }]));
    return prepareChat(part, protocol, { host, kind: 'anthropic', spoken, cache: askedCache });
  },
});
