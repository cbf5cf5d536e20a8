/** OpenAI's chat completions. */
import {
  asksOf,
  escapes,
  future,
  numbers,
  pairUp,
  scripts,
  type WrittenAnswer,
  type WrittenRequest,
} from './exchange.ts';

const asks = asksOf('small');
const limit = '"max_tokens":50';
const hi = '"messages":[{"role":"user","content":"hi"}]';
const tool = `{"type":"function","function":{"name":"read_file","description":"Reads.","parameters":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer","maximum":9007199254740993}},"required":["path"],"additionalProperties":false},"strict":true},"cache_control":{"type":"ephemeral"}}`;
const called = String.raw`{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"index":0,"id":"functions.read_file:0","type":"function","function":{"name":"read_file","arguments":"{\"path\": \"\\u00e9\\/a\",\"n\":9007199254740993}"},"extra_content":{"google":{"thought_signature":"Eq=="}}}],"reasoning_content":"hm","annotations":[],"audio":null}`;

const requests: readonly WrittenRequest[] = [
  asks('a question', `${hi},${limit}`),
  { name: 'another order', text: `{${hi},"temperature":0.5,${limit},"model":"small"}` },
  {
    name: 'white space',
    text: `\r\n{ "model" : "small" ,\r\n\t${limit} ,\n\n "messages" :[ {"role":"user" , "content":"hi"} ]\t}\n \n`,
  },
  asks(
    'numbers',
    `${hi},${limit},"temperature":1.0,"top_p":1e0,"presence_penalty":-0,"frequency_penalty":1E-2,"seed":12345678901234567890`,
  ),
  asks('a seed of 64 bits', `"seed":-9223372036854775808,${hi},"max_completion_tokens":5e1`),
  asks('escapes', `${limit},"messages":[{"role":"user","content":"${escapes}"}]`),
  asks('scripts', `"messages":[{"role":"user","content":"${scripts}"}],${limit}`),
  { name: 'an escaped name', text: String.raw`{"mod\u0065l":"small",${hi},"max\u005ftokens":50}` },
  asks(
    'roles and speakers',
    `${limit},"messages":[{"role":"system","content":"s"},{"role":"developer","content":[{"type":"text","text":"d"}]},{"role":"user","name":"ann","content":"u"},{"role":"assistant","name":"bob","content":"a"},{"role":"user","content":""}]`,
  ),
  asks(
    'a tool',
    `${hi},${limit},"tools":[${tool}],"tool_choice":{"type":"function","function":{"name":"read_file"}},"parallel_tool_calls":false`,
  ),
  asks(
    'results of tools',
    `${limit},"tools":[${tool}],"messages":[{"role":"user","content":"hi"},${called},{"role":"tool","tool_call_id":"functions.read_file:0","name":"read_file","content":[{"type":"text","text":"1.0","cache_control":{"type":"ephemeral"}}]}]`,
  ),
  asks(
    'a custom tool',
    `${hi},${limit},"tools":[{"type":"custom","custom":{"name":"patch","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"start: /a\\\\/b/"}}}}]`,
  ),
  asks(
    'allowed tools',
    `${hi},${limit},"tools":[${tool}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"read_file"}}]}}`,
  ),
  asks(
    'an image',
    `${limit},"messages":[{"role":"user","content":[{"type":"text","text":"what?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo=","detail":"low"}}]}]`,
  ),
  asks(
    'an image and a recording',
    `${limit},"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https:\\/\\/x.test\\/a.png?b=c&d"}},{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}}]}]`,
  ),
  asks(
    'a file',
    `${limit},"messages":[{"role":"user","content":[{"type":"file","file":{"filename":"ä.pdf","file_data":"data:application/pdf;base64,JVBERi0="}},{"type":"file","file":{"file_id":"file-1"}}]}]`,
  ),
  asks(
    'a video of another provider',
    `${limit},"messages":[{"role":"user","content":[{"type":"video_url","video_url":{"url":"https://x.test/v"},"fps":1.0}]}]`,
  ),
  asks(
    'a schema',
    `${hi},${limit},"response_format":{"type":"json_schema","json_schema":{"name":"rate","strict":true,"schema":{"type":"object","properties":{"r":{"type":"number","multipleOf":0.10}},"required":["r"],"additionalProperties":false}}}`,
  ),
  asks(
    'JSON and stops',
    `${hi},${limit},"response_format":{"type":"json_object"},"stop":["}","\\n\\n","\\u0000"]`,
  ),
  asks('log probabilities', `${hi},${limit},"logprobs":true,"top_logprobs":20,"logit_bias":{"50256":-100}`),
  asks('two answers', `${hi},${limit},"n":2`),
  asks(
    'spoken answers',
    `${hi},${limit},"modalities":["text","audio"],"audio":{"voice":"alloy","format":"pcm16"}`,
  ),
  asks(
    'a prediction',
    `${hi},${limit},"prediction":{"type":"content","content":[{"type":"text","text":"a\\tb"}]}`,
  ),
  asks(
    'effort',
    `${hi},${limit},"reasoning_effort":"xhigh","verbosity":"low","thinking":{"type":"enabled"},"chat_template_kwargs":{"enable_thinking":false}`,
  ),
  asks(
    'services',
    `${hi},${limit},"web_search_options":{"search_context_size":"low","user_location":null},"metadata":{"a":"b"},"store":true,"service_tier":"flex","prompt_cache_key":"k","safety_identifier":"s","user":"u-1"`,
  ),
  asks(
    'fields of next year',
    `${future},${limit},"messages":[{"role":"user","content":"hi","x_new":${numbers}}]`,
  ),
  asks(
    'names that come twice',
    `${hi},${limit},"temperature":0.1,"temperature":0.2,"model":"small","x":1,"x":2,"messages":[{"role":"user","role":"user","content":"a","content":"b"}]`,
  ),
  asks(
    'nothing',
    `${hi},${limit},"tools":null,"tool_choice":null,"stop":null,"seed":null,"functions":null,"response_format":null,"logit_bias":null,"user":null`,
  ),
  asks(
    'empty lists',
    `${limit},"messages":[{"role":"user","content":[]},{"role":"assistant","content":"","tool_calls":[]}],"tools":[],"stop":[]`,
  ),
  asks(
    'functions of old',
    `${limit},"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"1"}],"functions":[{"name":"f","parameters":{}}],"function_call":"auto"`,
  ),
];

const usage =
  '"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18,"prompt_tokens_details":{"cached_tokens":0},"x_time":1.0}';
const head = '"id":"chatcmpl-1","created":1700000000,"model":"small-2026-01-01"';

/** A chunk with the members of its choice, or with its choices. */
function chunk(choice: string, more = ''): string {
  const choices = choice.startsWith('[') ? choice : `[{"index":0,${choice}}]`;
  return `data: {${head},"object":"chat.completion.chunk","choices":${choices}${more}}\n\n`;
}
const counted = chunk('[]', `,${usage}`);
const done = 'data: [DONE]\n\n';

interface Spoken {
  /** Members of the message of a whole answer. */
  readonly message: string;
  /** Of a stream. */
  readonly deltas: readonly string[];
  readonly finish?: string;
  /** Further members of each body and each chunk, with a comma before them. */
  readonly more?: string;
}

function says(name: string, { message, deltas, finish = 'stop', more = '' }: Spoken): WrittenAnswer {
  return {
    name,
    whole: `{${head},"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant",${message}},"logprobs":null,"finish_reason":"${finish}"}],${usage}${more}}`,
    events: [
      chunk('"delta":{"role":"assistant","content":""},"finish_reason":null', more),
      ...deltas.map((delta) => chunk(`"delta":{${delta}},"finish_reason":null`, more)),
      chunk(`"delta":{},"finish_reason":"${finish}"`, more),
      counted,
      done,
    ].join(''),
  };
}

function text(content: string): Spoken {
  return {
    message: `"content":"${content}"`,
    deltas: [`"content":"${content}"`],
  };
}

const plain = says('a text', {
  message: '"content":"Hello","refusal":null,"annotations":[]',
  deltas: ['"content":"Hel"', '"content":"lo"'],
});
const longText = '漢\\u0001😀x'.repeat(6_000);
function call(index: number, id: string, written: string): string {
  return `{"index":${index},"id":"${id}","type":"function","function":{"name":"f","arguments":"${written}"}}`;
}

function piece(index: number, written: string): string {
  return `"tool_calls":[{"index":${index},"function":{"arguments":"${written}"}}]`;
}

/** Another way to write the events of a stream. */
function written(name: string, rewrite: (events: string) => string, whole = plain.whole): WrittenAnswer {
  return { name, whole, events: rewrite(plain.events) };
}

const answers: readonly WrittenAnswer[] = [
  plain,
  says('escapes', text(escapes)),
  says('scripts', text(scripts)),
  says('halves of a pair', {
    message: String.raw`"content":"\ud83d\ude00"`,
    deltas: [String.raw`"content":"\ud83d"`, String.raw`"content":"\ude00"`],
  }),
  says('numbers', { ...text('1'), more: `,"x_numbers":${numbers}` }),
  says('a call', {
    message: `"content":null,"tool_calls":[${call(0, 'c', '{\\"n\\": 1.0}')}]`,
    deltas: [`"tool_calls":[${call(0, 'c', '')}]`, piece(0, '{\\"n\\"'), piece(0, ': 1.0}')],
    finish: 'tool_calls',
  }),
  says('a call in one piece', {
    message: `"content":"","tool_calls":[${call(0, 'c', '{}')}]`,
    deltas: [`"tool_calls":[${call(0, 'c', '{}')}]`],
    finish: 'tool_calls',
  }),
  says('calls in parallel', {
    message: `"content":"So.","tool_calls":[${call(0, 'a', '{}')},${call(1, 'b', '[1.0]')}]`,
    deltas: [
      `"content":"So.","tool_calls":[${call(0, 'a', '')},${call(1, 'b', '')}]`,
      piece(1, '[1'),
      piece(0, '{'),
      piece(1, '.0]'),
      piece(0, '}'),
    ],
    finish: 'tool_calls',
  }),
  says('calls without ids and indexes', {
    message: '"content":null,"tool_calls":[{"function":{"name":"f","arguments":{"a":1.0}}}]',
    deltas: ['"tool_calls":[{"function":{"name":"f","arguments":{"a":1.0}}}]'],
    finish: 'stop',
  }),
  says('a custom call', {
    message:
      '"content":null,"tool_calls":[{"id":"c","type":"custom","custom":{"name":"patch","input":"*** Begin\\\\n"}}]',
    deltas: [
      '"tool_calls":[{"index":0,"id":"c","type":"custom","custom":{"name":"patch","input":"*** Be"}}]',
      '"tool_calls":[{"index":0,"custom":{"input":"gin\\\\n"}}]',
    ],
    finish: 'tool_calls',
  }),
  says('a call of a model that signs', {
    message: `"content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"Eq\\/=="}}}]`,
    deltas: [
      '"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"Eq\\/=="}}}]',
    ],
    finish: 'tool_calls',
  }),
  says('thoughts', {
    message: '"content":"4","reasoning_content":"hm é"',
    deltas: [
      '"content":null,"reasoning_content":"hm"',
      '"reasoning_content":" é"',
      '"content":"4","reasoning_content":null',
    ],
  }),
  says('thoughts that are signed', {
    message:
      '"content":"4","reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"Eq==","index":0},{"type":"reasoning.encrypted","data":"gAAA"}]',
    deltas: [
      '"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"Eq==","index":0}]',
      '"reasoning_details":[{"type":"reasoning.encrypted","data":"gAAA"}]',
      '"content":"4"',
    ],
  }),
  says('a refusal', {
    message: '"content":null,"refusal":"I can’t."',
    deltas: ['"refusal":"I can"', '"refusal":"’t."'],
  }),
  says('a filter', {
    ...text('x'),
    finish: 'content_filter',
    more: ',"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]',
  }),
  says('an empty text', { message: '"content":""', deltas: [], finish: 'length' }),
  says('no text', { message: '"content":null', deltas: ['"content":null'], finish: 'stop' }),
  says('a long text', text(longText)),
  says('sources', {
    message:
      '"content":"a","annotations":[{"type":"url_citation","url_citation":{"url":"https://x.test/é?a=1&b","title":"T","start_index":0,"end_index":1}}]',
    deltas: [
      '"content":"a"',
      '"annotations":[{"type":"url_citation","url_citation":{"url":"https://x.test/é?a=1&b","title":"T","start_index":0,"end_index":1}}]',
    ],
  }),
  says('a recording', {
    message:
      '"content":null,"audio":{"id":"audio_1","data":"UklGRg==","expires_at":1700000000,"transcript":"hi"}',
    deltas: [
      '"audio":{"id":"audio_1","transcript":"h"}',
      '"audio":{"data":"UklG"}',
      '"audio":{"data":"Rg==","expires_at":1700000000,"transcript":"i"}',
    ],
  }),
  {
    name: 'log probabilities',
    whole: `{${head},"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"é"},"logprobs":{"content":[{"token":"\\\\xc3","logprob":-0.0,"bytes":[195],"top_logprobs":[]}],"refusal":null},"finish_reason":"stop"}],${usage}}`,
    events: `${chunk('"delta":{"role":"assistant","content":"é"},"logprobs":{"content":[{"token":"\\\\xc3","logprob":-1e-05,"bytes":[195,169],"top_logprobs":[]}],"refusal":null},"finish_reason":null')}${chunk('"delta":{},"finish_reason":"stop"')}${counted}${done}`,
  },
  {
    name: 'two answers',
    whole: `{${head},"choices":[{"index":1,"message":{"role":"assistant","content":"b"},"finish_reason":"stop"},{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"length"}],${usage}}`,
    events: `${chunk('[{"index":1,"delta":{"content":"b"}}]')}${chunk('[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{},"finish_reason":"stop"}]')}${chunk('"delta":{},"finish_reason":"length"')}${counted}${done}`,
  },
  written(
    'comments and pings',
    (events) =>
      `: OPENROUTER PROCESSING\n\n:\n\n${events.replace('data: [DONE]', 'event: ping\ndata: {}\n\n: keep-alive\n\ndata: [DONE]')}`,
    `\n\n  ${plain.whole}\n`,
  ),
  written(
    'carriage returns',
    (events) => events.replaceAll('\n', '\r\n'),
    plain.whole.replaceAll(',"', ',\r\n\t"'),
  ),
  written('no spaces after colons', (events) =>
    events.replaceAll('data: {', 'data:{').replace('data: [DONE]', 'data:[DONE]'),
  ),
  written('events with names and ids', (events) =>
    events.replaceAll('data: {', 'event: message\nid: 7\nretry: 3000\nx-unknown: é\ndata: {'),
  ),
  written('data in several lines', (events) => events.replaceAll('"choices":', '\ndata: "choices":')),
  written(
    'an unknown event',
    (events) => `event: x.future\ndata: {"x":${numbers},"choices":[]}\n\n${events}`,
  ),
  written(
    'errors that are null',
    (events) => events.replaceAll('"object":', '"error":null,"object":'),
    plain.whole.replace('"object":', '"error" : null,"object":'),
  ),
  written('no end of the last line', (events) => events.trimEnd(), ` ${plain.whole}`),
];

export const chatExchanges = pairUp(requests, answers);
