/**
 * Kind `openai`: chat, embeddings, transcriptions, speech and images by OpenAI's protocol, which vLLM, Ollama, llama.cpp,
 * whisper servers and most providers speak. A chat is a capability `model.…`: it has tools, and may serve a level of the
 * escalation ladder.
 */
import { z } from 'zod';
import { prepareChat } from '../models/chat.ts';
import { prepareEmbeddings } from '../models/embeddings.ts';
import { chatFields, Efforts, providerFields } from '../models/model-part.ts';
import { TextPrices } from '../models/money/file-prices.ts';
import { ownCache } from '../models/money/prices.ts';
import { readResponsesUsage } from '../models/money/usage.ts';
import type { NativeProtocols } from '../models/native/call.ts';
import { createOpenAiChat } from '../models/openai-chat.ts';
import { createResponsesReader } from '../models/openai-responses.ts';
import type { ModelProtocol } from '../models/protocol.ts';
import { createProvider } from '../models/provider.ts';
import { defineKind, type PreparedKind, type WrapHost } from '../wrap-kind.ts';
import { mediaEndpoints } from './openai-media.ts';

const ChatEndpoint = z.strictObject({
  ...chatFields,
  endpoint: z.literal('chat'),
  structured_output: z.enum(['json_schema', 'json_object', 'prompt']).default('json_schema'),
  token_limit_field: z.enum(['max_tokens', 'max_completion_tokens']).default('max_tokens'),
  reasoning_effort: Efforts.optional(),
  protocols: z.array(z.enum(['openai.chat', 'openai.responses'])).default(['openai.chat']),
});
type ChatEndpoint = z.infer<typeof ChatEndpoint>;

const EmbeddingsEndpoint = z.strictObject({
  ...providerFields,
  endpoint: z.literal('embeddings'),
  prices: TextPrices.optional(),
});

const MediaEndpoint = z.strictObject({
  ...providerFields,
  endpoint: z.enum(['transcriptions', 'speech', 'images']),
});

const OpenaiPart = z.discriminatedUnion('endpoint', [ChatEndpoint, EmbeddingsEndpoint, MediaEndpoint]);

const kind = 'openai';

function authorize(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

/** Protocols of clients that the provider speaks. */
function spokenBy({ protocols, token_limit_field: own }: ChatEndpoint, chat: ModelProtocol): NativeProtocols {
  const other = own === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
  const all = {
    'openai.chat': { ...chat, limitFields: [own, other], asksForUsage: true, conversation: 'messages' },
    'openai.responses': {
      path: '/responses',
      createReader: createResponsesReader,
      readUsage: readResponsesUsage,
      limitFields: ['max_output_tokens'],
      asksForUsage: false,
      conversation: 'input',
    },
  } satisfies NativeProtocols;
  return Object.fromEntries(protocols.map((name) => [name, all[name]]));
}

function prepareMedia(part: z.infer<typeof MediaEndpoint>, host: WrapHost): PreparedKind {
  const { perform, ...defaults } = mediaEndpoints[part.endpoint];
  const provider = createProvider(part, { host, kind, headers: authorize(part.token) });
  return {
    defaults,
    fileForm: 'data_uri',
    writesFiles: false,
    originOf: () => provider.origin,
    perform: (call) => perform(part, provider, call),
  };
}

export const openai = defineKind({
  shape: OpenaiPart,
  prepare: (part, host) => {
    const headers = authorize(part.token);
    switch (part.endpoint) {
      case 'chat': {
        const { model, token_limit_field: limitField, structured_output: structuredOutput } = part;
        const protocol = createOpenAiChat({ model, headers, limitField, structuredOutput });
        return prepareChat(part, protocol, { host, kind, spoken: spokenBy(part, protocol), cache: ownCache });
      }
      case 'embeddings':
        return prepareEmbeddings(part, host, { kind, headers });
      default:
        return prepareMedia(part, host);
    }
  },
});
