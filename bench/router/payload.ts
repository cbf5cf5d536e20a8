/** The same amount of text in every request and every answer. */
export const requestText = 'router '.repeat(28).padEnd(200, '.');
export const answerText = 'answer '.repeat(28).padEnd(200, '.');
/** The pieces in which a stream brings the answer. */
export const answerPieces: readonly string[] = answerText.match(/.{10}/g) ?? [];

/** Protocols of models, in which all are asked for the same. */
export const protocols = ['chat', 'messages', 'responses'] as const;
export type Protocol = (typeof protocols)[number];

/** Paths of a provider, of gateways that speak as it does, and of Capstan before them. */
export const paths = {
  chat: { provider: '/v1/chat/completions', capstan: '/openai/v1/chat/completions' },
  messages: { provider: '/v1/messages', capstan: '/anthropic/v1/messages' },
  responses: { provider: '/v1/responses', capstan: '/openai/v1/responses' },
} as const satisfies Readonly<Record<Protocol, object>>;

/** Of the events of a stream: what the last one contains, and the text that one brings. */
interface Events {
  readonly end: string;
  readonly textOf: (event: Readonly<Record<string, unknown>>) => unknown;
}

interface Delta {
  readonly content?: string;
  readonly text?: string;
}

export const events: Readonly<Record<Protocol, Events>> = {
  chat: {
    end: '[DONE]',
    textOf: ({ choices }) => (choices as readonly { readonly delta: Delta }[])[0]?.delta.content,
  },
  messages: {
    end: '"message_stop"',
    textOf: ({ type, delta }) => (type === 'content_block_delta' ? (delta as Delta).text : ''),
  },
  responses: {
    end: '"response.completed"',
    textOf: ({ type, delta }) => (type === 'response.output_text.delta' ? delta : ''),
  },
};

export function requestOf(protocol: Protocol, model: string, isStream: boolean): object {
  const stream = isStream ? { stream: true } : {};
  const messages = [{ role: 'user', content: requestText }];
  switch (protocol) {
    case 'chat':
      return { model, messages, ...stream };
    case 'messages':
      return { model, max_tokens: 1_000, messages, ...stream };
    case 'responses':
      // The server keeps no answer.
      return { model, input: requestText, store: false, ...stream };
  }
}
