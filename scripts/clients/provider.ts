/**
 * A provider that answers what the question itself states, one line a turn: `CALL name {…}` asks for a tool, and in
 * `SAY "…"` the words `{result}` stand for the last result of a tool. A client that loses a turn or a result cannot pass.
 */
import { randomBytes } from 'node:crypto';
import type { ModelReply, ModelRequest } from '../../test/support/model-server.ts';

interface Part {
  readonly type: string;
  readonly text?: string;
  readonly content?: string | readonly Part[];
}

type Message = ModelRequest['body']['messages'][number];

function partsOf({ role, content }: Message): readonly Part[] {
  if (typeof content !== 'string') return (content ?? []) as readonly Part[];
  return [role === 'tool' ? { type: 'tool_result', content } : { type: 'text', text: content }];
}

function textOf(parts: string | readonly Part[] = ''): string {
  return typeof parts === 'string' ? parts : parts.map(({ text = '' }) => text).join('\n');
}

const line = /^(?:CALL [\w.-]+ \{.*\}|SAY ".*"|HANG)$/gm;

function linesOf(message: Message): readonly string[] {
  return message.role === 'user' ? (textOf(partsOf(message)).match(line) ?? []) : [];
}

function resultOf(message: Message | undefined): string {
  const result = message && partsOf(message).findLast(({ type }) => type === 'tool_result');
  return textOf(result?.content ?? (message?.role === 'tool' ? partsOf(message) : ''));
}

/** @returns null for a question that states no answer */
function nextLine({ messages }: ModelRequest['body']): string | null {
  const asked = messages.findLastIndex((message) => linesOf(message).length > 0);
  const turns = messages.slice(asked + 1).filter(({ role }) => role === 'assistant');
  return asked < 0 ? null : (linesOf(messages[asked] as Message)[turns.length] ?? null);
}

interface Tool {
  readonly name?: string;
  readonly function?: { readonly name: string };
}

function offers({ tools }: ModelRequest['body'], name: string): boolean {
  return ((tools ?? []) as readonly Tool[]).some((tool) => (tool.function?.name ?? tool.name) === name);
}

function hasPicture({ messages }: ModelRequest['body']): boolean {
  return messages.some((message) => partsOf(message).some(({ type }) => /^image(_url)?$/.test(type)));
}

/** Programs take answers with one id for one, and calls of tools too. */
function newId(kind: string): string {
  return `${kind}_${randomBytes(12).toString('hex')}`;
}

function say(text: string): ModelReply {
  return { id: newId('msg'), text };
}

function call(body: ModelRequest['body'], name: string, written: string): ModelReply {
  if (!offers(body, name)) return say(`no tool is called ${name}`);
  const toolCalls = [{ id: newId('call'), name, arguments: written }];
  return { id: newId('msg'), text: '', toolCalls, finish: 'tool_calls' };
}

/** Libraries that ask a provider to keep the conversation send it whole then. */
const noThread = {
  type: 'error',
  error: {
    type: 'invalid_request_error',
    message: 'this request cannot be threaded',
    details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] },
  },
};

export function answerClient({ path, body }: ModelRequest): ModelReply {
  if (path.endsWith('/embeddings')) return { vectors: (text) => [text.length, 0.5], tokens: 7 };
  if (body.thread !== undefined) return { status: 400, body: noThread };
  if (hasPicture(body)) return say('I see a picture');
  const next = nextLine(body);
  if (next === null) return say('the question states no further answer');
  if (next === 'HANG') return 'hang';
  const [, name, written = ''] = /^CALL (\S+) (.*)$/.exec(next) ?? [];
  if (name !== undefined) return call(body, name, written);
  const text = JSON.parse(next.slice('SAY '.length)) as string;
  return say(text.replace('{result}', resultOf(body.messages.at(-1))));
}
