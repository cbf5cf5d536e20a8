/** An answer in the providers' wire formats. */

export interface WrittenAnswer {
  /** Default: one for all answers. */
  readonly id?: string;
  /** Sent in several pieces when streamed. */
  readonly text: string;
  /** Calls of tools, streamed in pieces after the text. */
  readonly toolCalls?: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  /** Default: as the request names it. */
  readonly model?: string;
  /** OpenAI's name: stop (default), length, content_filter; null leaves the stream without an end. */
  readonly finish?: 'stop' | 'length' | 'content_filter' | 'tool_calls' | null;
  /** The stop that ended it, as Anthropic and vLLM write it. */
  readonly stopSequence?: string;
  /** Tokens in and out; null omits them. Default 10 and 5. */
  readonly usage?: readonly [number, number] | null;
}

function event(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

function piecesOf(text: string): readonly string[] {
  return text.match(/[\s\S]{1,7}/g) ?? [];
}

function chatUsage({ usage = [10, 5] }: WrittenAnswer) {
  return usage === null
    ? {}
    : {
        usage: { prompt_tokens: usage[0], completion_tokens: usage[1], total_tokens: usage[0] + usage[1] },
      };
}

/** `POST /v1/chat/completions` with `stream: true` and usage included. */
export function chatChunks(asked: string, answer: WrittenAnswer): readonly string[] {
  const { id: own = 'chatcmpl-1', text, toolCalls = [], model = asked, finish = 'stop' } = answer;
  const { stopSequence: stop_reason } = answer;
  const head = { id: own, object: 'chat.completion.chunk', created: 1_700_000_000, model };
  const chunk = (delta: object, finish_reason: string | null = null): string =>
    event({ ...head, choices: [{ index: 0, delta, finish_reason, ...(finish_reason && { stop_reason }) }] });
  const usage = chatUsage(answer);
  return [
    chunk({ role: 'assistant', content: '' }),
    ...piecesOf(text).map((content) => chunk({ content })),
    ...toolCalls.flatMap(({ id, name, arguments: written }, index) => [
      chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
      ...piecesOf(written).map((piece) => chunk({ tool_calls: [{ index, function: { arguments: piece } }] })),
    ]),
    ...(finish === null ? [] : [chunk({}, finish)]),
    ...('usage' in usage ? [event({ ...head, choices: [], ...usage })] : []),
    'data: [DONE]\n\n',
  ];
}

/** `POST /v1/chat/completions` without streaming. */
export function chatCompletion(asked: string, answer: WrittenAnswer): object {
  return {
    id: answer.id ?? 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: answer.model ?? asked,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: answer.text,
          ...(answer.toolCalls && {
            tool_calls: answer.toolCalls.map(({ id, ...called }) => ({
              id,
              type: 'function',
              function: called,
            })),
          }),
        },
        finish_reason: answer.finish ?? 'stop',
      },
    ],
    ...chatUsage(answer),
  };
}

const stopReasons = {
  stop: 'end_turn',
  length: 'max_tokens',
  content_filter: 'refusal',
  tool_calls: 'tool_use',
} as const;

/** `POST /v1/messages` without streaming. */
export function anthropicMessage(asked: string, answer: WrittenAnswer): object {
  const { text, toolCalls = [], model = asked, finish, stopSequence, usage } = answer;
  const [input_tokens, output_tokens] = usage ?? [10, 5];
  const calls = toolCalls.map(({ id, name, arguments: written }) => {
    return { type: 'tool_use', id, name, input: JSON.parse(written) };
  });
  return {
    id: answer.id ?? 'msg_1',
    type: 'message',
    role: 'assistant',
    model,
    content: [{ type: 'text', text }, ...calls],
    stop_reason: stopSequence === undefined ? stopReasons[finish ?? 'stop'] : 'stop_sequence',
    stop_sequence: stopSequence ?? null,
    usage: { input_tokens, output_tokens },
  };
}

/** `POST /v1/messages` with `stream: true`. */
export function anthropicEvents(asked: string, answer: WrittenAnswer): readonly string[] {
  const { text, toolCalls = [], model = asked, finish = 'stop', stopSequence, usage } = answer;
  const [input_tokens, output_tokens] = usage ?? [10, 5];
  const named = (type: string, data: object = {}): string => `event: ${type}\n${event({ type, ...data })}`;
  const { id = 'msg_1' } = answer;
  const message = { id, type: 'message', role: 'assistant', model, content: [], stop_reason: null };
  const ended = finish === null ? null : stopReasons[finish];
  const stop_reason = stopSequence === undefined ? ended : 'stop_sequence';
  return [
    named('message_start', { message: { ...message, usage: { input_tokens, output_tokens: 1 } } }),
    named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    ...piecesOf(text).map((piece) => {
      return named('content_block_delta', { index: 0, delta: { type: 'text_delta', text: piece } });
    }),
    named('content_block_stop', { index: 0 }),
    ...toolCalls.flatMap(({ id, name, arguments: written }, position) => {
      const index = position + 1;
      const delta = (partial_json: string) => ({ type: 'input_json_delta', partial_json });
      return [
        named('content_block_start', { index, content_block: { type: 'tool_use', id, name, input: {} } }),
        ...piecesOf(written).map((piece) => named('content_block_delta', { index, delta: delta(piece) })),
        named('content_block_stop', { index }),
      ];
    }),
    named('message_delta', {
      delta: { stop_reason, stop_sequence: stopSequence ?? null },
      usage: { output_tokens },
    }),
    named('message_stop'),
  ];
}
