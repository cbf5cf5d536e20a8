/** Anthropic's messages. */
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

const asks = asksOf('claude');
const limit = '"max_tokens":50';
const hi = '"messages":[{"role":"user","content":"hi"}]';
const tool = `{"name":"read_file","description":"Reads.","input_schema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}},"strict":true,"eager_input_streaming":true,"cache_control":{"type":"ephemeral","ttl":"1h"}}`;
const thought = String.raw`{"type":"thinking","thinking":"hm \u00e9","signature":"EqQB\/w=="}`;
function user(...blocks: readonly string[]): string {
  return `"messages":[{"role":"user","content":[${blocks.join(',')}]}]`;
}

function after(blocks: string, ...results: readonly string[]): string {
  return `"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[${blocks}]},{"role":"user","content":[${results.join(',')}]}]`;
}

const requests: readonly WrittenRequest[] = [
  asks('a question', `${limit},${hi}`),
  { name: 'another order', text: `{${hi},"stop_sequences":["a"],${limit},"model":"claude"}` },
  {
    name: 'white space',
    text: `\r\n{ "model" : "claude" ,\r\n\t${limit} ,\n\n "messages" :[ {"role":"user" , "content":"hi"} ]\t}\n \n`,
  },
  asks('numbers', `"max_tokens":5E1,"temperature":1.0,"top_p":1e0,"top_k":0,${hi},"x":${numbers}`),
  asks('escapes', `${limit},"system":"${escapes}","messages":[{"role":"user","content":"${escapes}"}]`),
  asks('scripts', `${limit},${user(`{"type":"text","text":"${scripts}"}`)}`),
  { name: 'an escaped name', text: String.raw`{"mod\u0065l":"claude",${hi},"max\u005ftokens":50}` },
  asks(
    'marks for the cache',
    `${limit},"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"b"}],"cache_control":{"type":"ephemeral"},${user('{"type":"text","text":"hi","cache_control":{"type":"ephemeral","ttl":"5m"}}')}`,
  ),
  asks(
    'a tool',
    `${limit},${hi},"tools":[${tool}],"tool_choice":{"type":"tool","name":"read_file","disable_parallel_tool_use":true}`,
  ),
  asks(
    'results of tools',
    `${limit},"tools":[${tool}],${after(`{"type":"text","text":"So."},{"type":"tool_use","id":"toolu_1","name":"read_file","input":{"n":9007199254740993,"r":1.50,"s":"\\u00e9\\/"}},{"type":"tool_use","id":"toolu_2","name":"read_file","input":{}}`, '{"type":"tool_result","tool_use_id":"toolu_2","is_error":true,"content":"no"}', '{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"1.0"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}],"cache_control":{"type":"ephemeral"}}')}`,
  ),
  asks('thinking', `"max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1024},${hi}`),
  asks(
    'adaptive thinking',
    `"max_tokens":2000,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"xhigh"},${hi}`,
  ),
  asks(
    'thoughts of an earlier turn',
    `"max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1024},"tools":[${tool}],${after(`${thought},{"type":"redacted_thinking","data":"EmwKAhgB\\/w=="},{"type":"tool_use","id":"toolu_1","name":"read_file","input":{"n":1}}`, '{"type":"tool_result","tool_use_id":"toolu_1"}')}`,
  ),
  asks(
    'an image',
    `${limit},${user('{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}', '{"type":"text","text":"what?"}')}`,
  ),
  asks(
    'images by address and by id',
    `${limit},${user('{"type":"image","source":{"type":"url","url":"https:\\/\\/x.test\\/a.png?b=c&d"}}', '{"type":"image","source":{"type":"file","file_id":"file_1"}}')}`,
  ),
  asks(
    'documents',
    `${limit},${user('{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="},"title":"ä","context":"c","citations":{"enabled":true}}', '{"type":"document","source":{"type":"content","content":[{"type":"text","text":"a"}]}}', '{"type":"document","source":{"type":"text","media_type":"text/plain","data":"漢"}}')}`,
  ),
  asks(
    'results of a search',
    `${limit},${user('{"type":"search_result","source":"https://x.test","title":"T","content":[{"type":"text","text":"a"}],"citations":{"enabled":true}}')}`,
  ),
  asks(
    'tools of the provider',
    `${limit},${hi},"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":3,"user_location":{"type":"approximate","city":"Oslo"}},{"type":"code_execution_20250825","name":"code_execution"},{"type":"bash_20250124","name":"bash"},{"type":"text_editor_20250728","name":"str_replace_based_edit_tool","max_characters":10000}]`,
  ),
  asks(
    'what a tool of the provider has found',
    `${limit},${after('{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"é"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://x.test","title":"T","encrypted_content":"Eq==","page_age":null}]},{"type":"text","text":"a","citations":[{"type":"web_search_result_location","url":"https://x.test","title":"T","encrypted_index":"Eo8=","cited_text":"c"}]}', '{"type":"text","text":"and?"}')}`,
  ),
  asks(
    'servers of tools',
    `${limit},${hi},"mcp_servers":[{"type":"url","url":"https://x.test/sse","name":"x","tool_configuration":{"enabled":true,"allowed_tools":["a"]}}],"tools":[{"type":"mcp_toolset","name":"x","mcp_server_name":"x","default_config":{"defer_loading":true}}]`,
  ),
  asks(
    'a schema',
    `${limit},${hi},"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"r":{"type":"number","multipleOf":0.10}},"required":["r"],"additionalProperties":false}}}`,
  ),
  asks(
    'edits of the context',
    `${limit},${hi},"context_management":{"edits":[{"type":"clear_tool_uses_20250919","trigger":{"type":"input_tokens","value":30000},"keep":{"type":"tool_uses","value":3}},{"type":"clear_thinking_20251015","keep":"all"}]}`,
  ),
  asks(
    'a container',
    `${limit},${hi},"container":{"id":"container_1","skills":[{"type":"anthropic","skill_id":"pptx","version":"latest"}]},"speed":"fast","inference_geo":"us"`,
  ),
  asks(
    'who asks',
    `${limit},${hi},"metadata":{"user_id":"user_1_account__session_2"},"service_tier":"standard_only","stop_sequences":["a","b","c","d","e","\\n\\nHuman:"]`,
  ),
  asks(
    'a beginning of the answer',
    `${limit},"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"{\\"r\\":"}]`,
  ),
  asks(
    'fields of next year',
    `${future.replace('"max_tokens":1e9', '"m":1e9')},${limit},"messages":[{"role":"user","content":[{"type":"x_block","x":${numbers}}],"x":1.0}]`,
  ),
  asks(
    'names that come twice',
    `${limit},"temperature":0.1,"temperature":0.2,"model":"claude","x":1,"x":2,"messages":[{"role":"user","role":"user","content":"a","content":"b"}]`,
  ),
  asks(
    'nothing',
    `${limit},${hi},"system":null,"tools":null,"tool_choice":null,"thinking":null,"stop_sequences":null,"metadata":null,"temperature":null`,
  ),
  asks(
    'empty lists',
    `${limit},"system":[],"tools":[],"stop_sequences":[],"messages":[{"role":"user","content":[]},{"role":"assistant","content":""},{"role":"user","content":"hi"}]`,
  ),
  asks(
    'instructions in the middle',
    `${limit},"messages":[{"role":"user","content":"hi"},{"role":"system","content":"be short"},{"role":"user","content":[{"type":"container_upload","file_id":"file_1"},{"type":"text","text":""}]}]`,
  ),
];

const head = '"id":"msg_1","type":"message","role":"assistant","model":"small-20260101"';
const inward =
  '"input_tokens":11,"cache_creation_input_tokens":0,"cache_read_input_tokens":3,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0}';

function event(name: string, members = ''): string {
  return `event: ${name}\ndata: {"type":"${name}"${members === '' ? '' : `,${members}`}}\n\n`;
}

interface Block {
  /** As in a whole answer. */
  readonly whole: string;
  readonly begin: string;
  readonly deltas: readonly string[];
}

interface Said {
  readonly stop?: string;
  readonly more?: string;
  /** Of the stop, in the whole answer and in the event. */
  readonly ended?: string;
}

const start = event(
  'message_start',
  `"message":{${head},"content":[],"stop_reason":null,"stop_sequence":null,"usage":{${inward},"output_tokens":1,"service_tier":"standard"}}`,
);

function says(
  name: string,
  blocks: readonly Block[],
  { stop = 'end_turn', more = '', ended = '"stop_sequence":null' }: Said = {},
): WrittenAnswer {
  const content = blocks.map(({ whole }) => whole).join(',');
  const events = blocks.flatMap(({ begin, deltas }, index) => [
    event('content_block_start', `"index":${index},"content_block":${begin}`),
    ...deltas.map((delta) => event('content_block_delta', `"index":${index},"delta":${delta}`)),
    event('content_block_stop', `"index":${index}`),
  ]);
  return {
    name,
    whole: `{${head},"content":[${content}],"stop_reason":"${stop}",${ended},"usage":{${inward},"output_tokens":7}${more}}`,
    events: [
      start,
      event('ping'),
      ...events,
      event('message_delta', `"delta":{"stop_reason":"${stop}",${ended}},"usage":{"output_tokens":7}${more}`),
      event('message_stop'),
    ].join(''),
  };
}

function text(...pieces: readonly string[]): Block {
  return {
    whole: `{"type":"text","text":"${pieces.join('')}"}`,
    begin: '{"type":"text","text":""}',
    deltas: pieces.map((piece) => `{"type":"text_delta","text":"${piece}"}`),
  };
}

function call(id: string, ...pieces: readonly string[]): Block {
  return {
    whole: `{"type":"tool_use","id":"${id}","name":"f","input":${pieces.join('') || '{}'}}`,
    begin: `{"type":"tool_use","id":"${id}","name":"f","input":{}}`,
    deltas: ['', ...pieces].map(
      (piece) => `{"type":"input_json_delta","partial_json":${JSON.stringify(piece)}}`,
    ),
  };
}

const thinking: Block = {
  whole: thought,
  begin: '{"type":"thinking","thinking":"","signature":""}',
  deltas: [
    '{"type":"thinking_delta","thinking":"hm"}',
    String.raw`{"type":"thinking_delta","thinking":" \u00e9"}`,
    String.raw`{"type":"signature_delta","signature":"EqQB\/w=="}`,
  ],
};
function once(whole: string): Block {
  return { whole, begin: whole, deltas: [] };
}

const searched = once(
  '{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"é","n":1.0}}',
);
const found = once(
  '{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https:\\/\\/x.test","title":"T","encrypted_content":"Eq==","page_age":null}]}',
);
const cited: Block = {
  whole:
    '{"type":"text","text":"a","citations":[{"type":"char_location","cited_text":"c","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1}]}',
  begin: '{"type":"text","text":"","citations":[]}',
  deltas: [
    '{"type":"text_delta","text":"a"}',
    '{"type":"citations_delta","citation":{"type":"char_location","cited_text":"c","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1}}',
  ],
};
const plain = says('a text', [text('Hel', 'lo')]);

/** Another way to write the events of a stream. */
function written(name: string, rewrite: (events: string) => string, whole = plain.whole): WrittenAnswer {
  return { name, whole, events: rewrite(plain.events) };
}

const answers: readonly WrittenAnswer[] = [
  plain,
  says('escapes', [text(escapes)]),
  says('scripts', [text(scripts)]),
  says('halves of a pair', [text(String.raw`\ud83d`, String.raw`\ude00`)]),
  says('numbers', [text('1')], { more: `,"x_numbers":${numbers}` }),
  says('a call', [call('toolu_1', '{"n": 900719925474', '0993,"r":1.0,', '"s":"\\u00e9"}')], {
    stop: 'tool_use',
  }),
  says('a call without arguments', [call('toolu_1')], { stop: 'tool_use' }),
  says('calls in parallel', [text('So.'), call('toolu_1', '{"a":', '1.0}'), call('toolu_2', '{"b":-0}')], {
    stop: 'tool_use',
  }),
  says(
    'a call that begins whole',
    [
      once(
        '{"type":"tool_use","id":"toolu_1","name":"f","input":{"n":12345678901234567890},"caller":{"type":"direct"}}',
      ),
    ],
    { stop: 'tool_use' },
  ),
  says('thoughts', [thinking, text('4')]),
  says('thoughts and a call', [thinking, call('toolu_1', '{}')], { stop: 'tool_use' }),
  says('thoughts that are redacted', [
    once('{"type":"redacted_thinking","data":"EmwKAhgB\\/w=="}'),
    text('4'),
  ]),
  says('thoughts alone', [thinking], { stop: 'max_tokens' }),
  says('a search', [text('I look.'), searched, found, cited]),
  says('a search that pauses', [searched], { stop: 'pause_turn' }),
  says('a search that failed', [
    searched,
    once(
      '{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"}}',
    ),
    text('no'),
  ]),
  says(
    'a program',
    [
      once(
        '{"type":"server_tool_use","id":"srvtoolu_2","name":"bash_code_execution","input":{"command":"ls"}}',
      ),
      once(
        '{"type":"bash_code_execution_tool_result","tool_use_id":"srvtoolu_2","content":{"type":"bash_code_execution_result","stdout":"a\\n","stderr":"","return_code":0,"content":[]}}',
      ),
      text('a'),
    ],
    { more: ',"container":{"id":"container_1","expires_at":"2026-01-01T00:00:00Z"}' },
  ),
  says('a tool of a server', [
    once('{"type":"mcp_tool_use","id":"mcptoolu_1","name":"echo","server_name":"x","input":{"p":1.0}}'),
    once(
      '{"type":"mcp_tool_result","tool_use_id":"mcptoolu_1","is_error":false,"content":[{"type":"text","text":"é"}]}',
    ),
    text('a'),
  ]),
  says('sources', [cited, text(' and ')]),
  says('a refusal', [text('I')], {
    stop: 'refusal',
    ended: '"stop_sequence":null,"stop_details":{"type":"refusal","category":"x"}',
  }),
  says('a stop sequence', [text('a')], {
    stop: 'stop_sequence',
    ended: String.raw`"stop_sequence":"\n\nHuman:"`,
  }),
  says('nothing', []),
  says('an end by the window', [text('a')], { stop: 'model_context_window_exceeded' }),
  says('edits of the context', [text('a')], {
    more: ',"context_management":{"applied_edits":[{"type":"clear_tool_uses_20250919","cleared_tool_uses":1,"cleared_input_tokens":100}]}',
  }),
  says('a block of next year', [
    {
      whole: `{"type":"x_block","x":${numbers}}`,
      begin: '{"type":"x_block","x":null}',
      deltas: [`{"type":"x_delta","x":${numbers}}`],
    },
    text('a'),
  ]),
  says('a long text', [text('漢\\u0001😀x'.repeat(6_000))]),
  written(
    'comments and pings',
    (events) =>
      `: hi\n\n${events.replaceAll('event: content_block_stop', 'event: ping\ndata: {"type": "ping"}\n\n:\n\nevent: content_block_stop')}`,
    `\n\n  ${plain.whole}\n`,
  ),
  written(
    'carriage returns',
    (events) => events.replaceAll('\n', '\r\n'),
    plain.whole.replaceAll(',"', ',\r\n\t"'),
  ),
  written('no names of events, no spaces', (events) =>
    events.replace(/event: \w+\n/g, '').replaceAll('data: {', 'data:{'),
  ),
  written(
    'an unknown event',
    (events) =>
      events
        .replace(
          'event: content_block_stop',
          `event: x_future\nid: 7\nretry: 3000\ndata: {"type":"x_future","x":${numbers},\ndata: "y":1}\n\nevent: content_block_stop`,
        )
        .trimEnd(),
    ` ${plain.whole}`,
  ),
];

export const messagesExchanges = pairUp(requests, answers);
