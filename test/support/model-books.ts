/**
 * A provider of models that keeps books of its own, with the ways in which providers report tokens. Its bill follows from
 * its own counts and prices; a quirk decides how much of the counts it reports.
 */
import type { ModelReply, ModelRequest } from './model-server.ts';

/** Tokens of one answer by their class; each token is in one class. */
export interface BilledTokens {
  input: number;
  read: number;
  write: number;
  write1h: number;
  audioIn: number;
  imageIn: number;
  output: number;
  reasoning: number;
  audioOut: number;
}

/** Nano-USD for a thousand tokens. */
const prices: BilledTokens = {
  input: 3_000_000,
  read: 300_000,
  write: 3_750_000,
  write1h: 6_000_000,
  audioIn: 40_000_000,
  imageIn: 5_000_000,
  output: 15_000_000,
  reasoning: 18_000_000,
  audioOut: 80_000_000,
};
/** Above so many tokens of a question everything costs twice as much. */
export const longQuestion = 200_000;

/** USD per million tokens, as the file of a model states them. */
function stated(factor: number) {
  const of = (name: keyof BilledTokens): number => (prices[name] * factor) / 1e6;
  return {
    input: of('input'),
    cached_read: of('read'),
    cached_write: of('write'),
    cached_write_1h: of('write1h'),
    input_audio: of('audioIn'),
    input_image: of('imageIn'),
    output: of('output'),
    reasoning: of('reasoning'),
    output_audio: of('audioOut'),
  };
}
const current = { ...stated(1), above: [{ tokens: longQuestion, ...stated(2) }] };
/** They have changed once, and will again. */
export const filePrices = [
  { ...stated(5) },
  { from: '2024-05-01', ...current },
  { from: '2999-01-01', ...stated(0.5) },
];

function questionOf({ input, read, write, write1h, audioIn, imageIn }: BilledTokens): number {
  return input + read + write + write1h + audioIn + imageIn;
}

export function billOf(tokens: BilledTokens): bigint {
  const names = Object.keys(prices) as (keyof BilledTokens)[];
  const sum = names.reduce((all, name) => all + BigInt(tokens[name]) * BigInt(prices[name]), 0n);
  const factor = questionOf(tokens) > longQuestion ? 2n : 1n;
  return (sum * factor + 999n) / 1_000n;
}

export type Wire = 'chat' | 'responses' | 'messages';

type Counts = Record<string, unknown>;

/** The report of a provider that counts everything. */
function honest(wire: Wire, tokens: BilledTokens): Counts {
  const { read, write, write1h, audioIn, imageIn, output, reasoning, audioOut } = tokens;
  const asked = questionOf(tokens);
  const written = output + reasoning + audioOut;
  if (wire === 'messages') {
    return {
      input_tokens: tokens.input,
      cache_read_input_tokens: read,
      cache_creation_input_tokens: write + write1h,
      cache_creation: { ephemeral_5m_input_tokens: write, ephemeral_1h_input_tokens: write1h },
      output_tokens: written,
      output_tokens_details: { thinking_tokens: reasoning },
    };
  }
  const [prompt, completion] = wire === 'chat' ? ['prompt', 'completion'] : ['input', 'output'];
  return {
    [`${prompt}_tokens`]: asked,
    [`${completion}_tokens`]: written,
    total_tokens: asked + written,
    [`${prompt}_tokens_details`]: {
      cached_tokens: read,
      cache_write_tokens: write,
      audio_tokens: audioIn,
      image_tokens: imageIn,
    },
    [`${completion}_tokens_details`]: { reasoning_tokens: reasoning, audio_tokens: audioOut },
  };
}

function mapCounts(counts: Counts, change: (count: number) => unknown): Counts {
  return Object.fromEntries(
    Object.entries(counts).map(([name, value]) => [
      name,
      typeof value === 'number' ? change(value) : mapCounts(value as Counts, change),
    ]),
  );
}

interface Told {
  readonly text?: string;
  readonly finish?: 'stop' | 'length';
  /** Null: none. */
  readonly usage: Counts | null;
  /** Before the last report. */
  readonly earlier?: readonly (Counts | null)[];
  /** After it. */
  readonly later?: readonly Counts[];
  readonly error?: 'with usage' | 'without usage';
  /** The answer has no end. */
  readonly isCut?: boolean;
  readonly status?: number;
}

export interface Quirk {
  /** What may differ from a plain answer: classes with tokens. */
  readonly tokens?: readonly (keyof BilledTokens)[];
  readonly wires?: readonly Wire[];
  /** Only requests that travel as their client wrote them. */
  readonly isNative?: boolean;
  readonly isLong?: boolean;
  /** Only as a stream. */
  readonly streams?: boolean;
  readonly wantsJson?: boolean;
  readonly leaves?: boolean;
  tell(wire: Wire, tokens: BilledTokens): Told;
}

const openAi: readonly Wire[] = ['chat', 'responses'];
function plain(wire: Wire, tokens: BilledTokens): Told {
  return { usage: honest(wire, tokens) };
}

function half(tokens: BilledTokens): BilledTokens {
  return { ...tokens, output: Math.floor(tokens.output / 2) };
}

function withoutReasoning(wire: Wire, tokens: BilledTokens): Counts {
  const name = wire === 'chat' ? 'completion_tokens' : 'output_tokens';
  return { ...honest(wire, tokens), [name]: tokens.output + tokens.audioOut };
}

export const quirks: Readonly<Record<string, Quirk>> = {
  plain: { tell: plain },
  cached: { tokens: ['read'], tell: plain },
  'writes to a cache': { tokens: ['read', 'write'], wires: openAi, tell: plain },
  'writes for an hour': {
    tokens: ['read', 'write', 'write1h'],
    wires: ['messages'],
    isNative: true,
    tell: plain,
  },
  'reasoning inside': { tokens: ['reasoning'], tell: plain },
  'reasoning beside': {
    tokens: ['reasoning', 'read'],
    wires: openAi,
    tell: (wire, tokens) => ({ usage: withoutReasoning(wire, tokens) }),
  },
  'a total that is larger': {
    wires: openAi,
    tell: (wire, tokens) => {
      const name = wire === 'chat' ? 'completion_tokens' : 'output_tokens';
      return { usage: { ...honest(wire, tokens), [name]: Math.floor(tokens.output / 3) } };
    },
  },
  'a cache beside the question': {
    tokens: ['read'],
    wires: openAi,
    tell: (wire, tokens) => {
      const name = wire === 'chat' ? 'prompt_tokens' : 'input_tokens';
      return { usage: { ...honest(wire, tokens), [name]: tokens.input } };
    },
  },
  'hits of a cache': {
    tokens: ['read'],
    wires: ['chat'],
    tell: (_, { input, read, output }) => ({
      usage: {
        prompt_tokens: input + read,
        completion_tokens: output,
        prompt_cache_hit_tokens: read,
        prompt_cache_miss_tokens: input,
      },
    }),
  },
  sound: { tokens: ['audioIn', 'audioOut', 'read'], wires: ['chat'], tell: plain },
  pictures: { tokens: ['imageIn'], wires: ['chat'], tell: plain },
  'cut by its limit': { tell: (wire, tokens) => ({ ...plain(wire, tokens), finish: 'length' }) },
  'no JSON': {
    wantsJson: true,
    tell: (wire, tokens) => ({ ...plain(wire, tokens), text: 'no JSON at all' }),
  },
  'no JSON and no usage': { wantsJson: true, tell: () => ({ usage: null, text: 'no JSON at all' }) },
  'an error with usage': { tell: (wire, tokens) => ({ ...plain(wire, tokens), error: 'with usage' }) },
  'an error without usage': { tell: () => ({ usage: null, error: 'without usage' }) },
  'a refusal with usage': { tell: (wire, tokens) => ({ ...plain(wire, tokens), status: 500 }) },
  'a timeout of its proxy': { tell: () => ({ usage: null, status: 504 }) },
  'a break': { tell: () => ({ usage: null, isCut: true }) },
  'no usage': { tell: () => ({ usage: null }) },
  'zeros with a text': {
    tell: (wire, tokens) => ({ usage: mapCounts(honest(wire, tokens), () => 0) }),
  },
  'negative counts': {
    tell: (wire, tokens) => ({ usage: mapCounts(honest(wire, tokens), () => -1) }),
  },
  'texts for numbers': {
    tokens: ['read'],
    tell: (wire, tokens) => ({ usage: mapCounts(honest(wire, tokens), String) }),
  },
  'usage in every chunk': {
    tokens: ['read'],
    wires: ['chat', 'messages'],
    streams: true,
    tell: (wire, tokens) => ({
      ...plain(wire, tokens),
      earlier: [1, 2].map(() => honest(wire, half(tokens))),
    }),
  },
  'null in every chunk': {
    wires: ['chat'],
    streams: true,
    tell: (wire, tokens) => ({ ...plain(wire, tokens), earlier: [null, null] }),
  },
  'zeros after its usage': {
    wires: ['chat', 'messages'],
    streams: true,
    tell: (wire, tokens) => {
      const counts = honest(wire, tokens);
      return { usage: counts, later: [mapCounts(counts, () => 0)] };
    },
  },
  'a long question': { isLong: true, tokens: ['read'], tell: plain },
  'a client that leaves': { leaves: true, streams: true, tell: () => ({ usage: null, isCut: true }) },
};

function eventOf(data: object, name?: string): string {
  return `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;
}

const failure = { message: 'the model broke', type: 'server_error', code: 'server_error' };
const answered = '{"rate": 1}';

function chatEvents({
  text = answered,
  finish = 'stop',
  usage,
  error,
  isCut,
  earlier = [],
  later = [],
}: Told): string[] {
  const chunk = (delta: object, more: object = {}, reason: string | null = null) =>
    eventOf({ model: 'm', choices: [{ index: 0, delta, finish_reason: reason }], ...more });
  const begun = [chunk({ content: text.slice(0, 3) }), ...earlier.map((one) => chunk({}, { usage: one }))];
  if (isCut) return begun;
  if (error !== undefined)
    return [...begun, eventOf({ error: failure, ...(usage === null ? {} : { usage }) })];
  const reports = [...(usage === null ? [] : [usage]), ...later];
  return [
    ...begun,
    chunk({ content: text.slice(3) }),
    chunk({}, {}, finish),
    ...reports.map((one) => eventOf({ choices: [], usage: one })),
    'data: [DONE]\n\n',
  ];
}

function responseOf({ text = answered, finish = 'stop', usage, error }: Told) {
  const content = [{ type: 'output_text', text, annotations: [] }];
  return {
    id: 'resp_1',
    object: 'response',
    model: 'm',
    status: error === undefined ? (finish === 'stop' ? 'completed' : 'incomplete') : 'failed',
    ...(finish === 'length' ? { incomplete_details: { reason: 'max_output_tokens' } } : {}),
    output: [{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content }],
    error: error === undefined ? null : failure,
    ...(usage === null ? {} : { usage }),
  };
}

function responseEvents(told: Told): string[] {
  const { text = answered, isCut, error } = told;
  const delta = { type: 'response.output_text.delta', item_id: 'msg_1', output_index: 0, content_index: 0 };
  const begun = [
    eventOf(
      { type: 'response.created', response: { id: 'resp_1', status: 'in_progress' } },
      'response.created',
    ),
    eventOf({ ...delta, delta: text }, delta.type),
  ];
  if (isCut) return begun;
  const response = responseOf(told);
  const type = error === undefined ? `response.${response.status}` : 'response.failed';
  return [...begun, eventOf({ type, response }, type)];
}

function messageEvents({
  text = answered,
  finish = 'stop',
  usage,
  error,
  isCut,
  earlier = [],
  later = [],
}: Told): string[] {
  const send = (type: string, more: object) => eventOf({ type, ...more }, type);
  const { output_tokens: _, ...asked } = usage ?? {};
  const first = usage === null ? {} : { usage: { ...asked, output_tokens: 1 } };
  const report = (one: Counts | null) => send('message_delta', { delta: {}, usage: one ?? {} });
  const begun = [
    send('message_start', { message: { model: 'm', content: [], ...first } }),
    send('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    send('content_block_delta', { index: 0, delta: { type: 'text_delta', text: text.slice(0, 3) } }),
    ...earlier.map(report),
  ];
  if (isCut) return begun;
  if (error !== undefined)
    return [...begun, send('error', { error: failure, ...(usage === null ? {} : { usage }) })];
  const stop_reason = finish === 'stop' ? 'end_turn' : 'max_tokens';
  return [
    ...begun,
    send('content_block_delta', { index: 0, delta: { type: 'text_delta', text: text.slice(3) } }),
    send('content_block_stop', { index: 0 }),
    send('message_delta', { delta: { stop_reason }, ...(usage === null ? {} : { usage }) }),
    ...later.map(report),
    send('message_stop', {}),
  ];
}

function wholeOf(wire: Wire, told: Told): object {
  const { text = answered, finish = 'stop', usage, error } = told;
  if (wire === 'responses') return responseOf(told);
  const counted = usage === null ? {} : { usage };
  if (error !== undefined) return { error: failure, ...counted };
  if (wire === 'chat') {
    return {
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: finish }],
      ...counted,
    };
  }
  const stop_reason = finish === 'stop' ? 'end_turn' : 'max_tokens';
  return {
    type: 'message',
    model: 'm',
    role: 'assistant',
    content: [{ type: 'text', text }],
    stop_reason,
    ...counted,
  };
}

function wireOf({ path }: ModelRequest): Wire {
  if (path.startsWith('/v1/messages')) return 'messages';
  return path.startsWith('/v1/responses') ? 'responses' : 'chat';
}

/** The provider's answer to a request. */
export function replyOf(request: ModelRequest, quirk: Quirk, tokens: BilledTokens): ModelReply {
  const wire = wireOf(request);
  const told = quirk.tell(wire, tokens);
  const { status, usage, isCut } = told;
  if (status !== undefined) return { status, body: { error: failure, ...(usage === null ? {} : { usage }) } };
  const isStream = request.body.stream === true;
  const write = { chat: chatEvents, responses: responseEvents, messages: messageEvents }[wire];
  if (isStream) return { garbage: write(told).join(''), ...(quirk.leaves ? { staysOpen: true } : {}) };
  const text = JSON.stringify(wholeOf(wire, told));
  return { garbage: isCut ? text.slice(0, text.length / 2) : text, contentType: 'application/json' };
}
