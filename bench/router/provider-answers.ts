/** The answers of a provider in each protocol: whole, and as the texts that a stream writes one by one. */
import { answerPieces, answerText, type Protocol } from './payload.ts';

interface Answers {
  readonly whole: string;
  readonly stream: readonly string[];
}

const [input, output] = [50, 50];

function chat(): Answers {
  const head = { id: 'chat-1', created: 1, model: 'bench' };
  const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
  const message = { role: 'assistant', content: answerText };
  const choices = [{ index: 0, message, finish_reason: 'stop' }];
  const event = (delta: object, finish_reason: string | null = null): string => {
    const chunk = { ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] };
    return `data: ${JSON.stringify(chunk)}\n\n`;
  };
  const last = JSON.stringify({ ...head, object: 'chat.completion.chunk', choices: [], usage });
  return {
    whole: JSON.stringify({ ...head, object: 'chat.completion', choices, usage }),
    stream: [
      ...answerPieces.map((content, at) => event(at === 0 ? { role: 'assistant', content } : { content })),
      `${event({}, 'stop')}data: ${last}\n\ndata: [DONE]\n\n`,
    ],
  };
}

function named(type: string, more: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
}

/** The first and the last text of a stream bring what surrounds the pieces. */
function surround(first: string, pieces: readonly string[], last: string): readonly string[] {
  return pieces.map((piece, at) => {
    const isLast = at === pieces.length - 1;
    return (at === 0 ? first : '') + piece + (isLast ? last : '');
  });
}

function messages(): Answers {
  const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'bench', stop_sequence: null };
  const inference_geo = 'global';
  const usage = { input_tokens: input, output_tokens: output, inference_geo };
  const content = [{ type: 'text', text: answerText }];
  const begun = { input_tokens: input, output_tokens: 1, inference_geo };
  const start = { ...head, content: [], stop_reason: null, usage: begun };
  const ended = { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: output } };
  return {
    whole: JSON.stringify({ ...head, content, stop_reason: 'end_turn', usage }),
    stream: surround(
      named('message_start', { message: start }) +
        named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
      answerPieces.map((text) =>
        named('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
      ),
      named('content_block_stop', { index: 0 }) + named('message_delta', ended) + named('message_stop', {}),
    ),
  };
}

function responses(): Answers {
  const head = {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    model: 'bench',
    parallel_tool_calls: true,
    tool_choice: 'auto',
    tools: [],
    error: null,
    incomplete_details: null,
    instructions: null,
    metadata: {},
    temperature: 1,
    top_p: 1,
  };
  const text = (written: string) => ({ type: 'output_text', text: written, annotations: [], logprobs: [] });
  const item = { type: 'message', id: 'msg_1', role: 'assistant' };
  const done = { ...item, status: 'completed', content: [text(answerText)] };
  const usage = {
    input_tokens: input,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + output,
  };
  const whole = { ...head, status: 'completed', output: [done], usage };
  let sequence_number = 0;
  const event = (type: string, more: object): string => {
    sequence_number += 1;
    return named(`response.${type}`, { sequence_number, ...more });
  };
  const place = { item_id: 'msg_1', output_index: 0, content_index: 0 };
  const begun = { ...head, status: 'in_progress', output: [] };
  const added = { output_index: 0, item: { ...item, status: 'in_progress', content: [] } };
  const first = [
    event('created', { response: begun }),
    event('in_progress', { response: begun }),
    event('output_item.added', added),
    event('content_part.added', { ...place, part: text('') }),
  ].join('');
  const pieces = answerPieces.map((delta) => event('output_text.delta', { ...place, delta, logprobs: [] }));
  const last = [
    event('output_text.done', { ...place, text: answerText, logprobs: [] }),
    event('content_part.done', { ...place, part: text(answerText) }),
    event('output_item.done', { output_index: 0, item: done }),
    event('completed', { response: whole }),
  ].join('');
  return { whole: JSON.stringify(whole), stream: surround(first, pieces, last) };
}

export const providerAnswers: Readonly<Record<Protocol, Answers>> = {
  chat: chat(),
  messages: messages(),
  responses: responses(),
};
