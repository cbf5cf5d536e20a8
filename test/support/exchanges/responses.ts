/** OpenAI's responses. */
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
const limit = '"max_output_tokens":50';
const hi = '"input":"hi"';
const tool = `{"type":"function","name":"read_file","description":"Reads.","parameters":{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}},"required":["n"],"additionalProperties":false},"strict":true}`;
function user(...parts: readonly string[]): string {
  return `"input":[{"role":"user","content":[${parts.join(',')}]}]`;
}

const requests: readonly WrittenRequest[] = [
  asks('a question', `${hi},${limit}`),
  { name: 'another order', text: `{${hi},"temperature":0.5,${limit},"model":"small"}` },
  {
    name: 'white space',
    text: `\r\n{ "model" : "small" ,\r\n\t${limit} ,\n\n "input" :[ {"role":"user" , "content":"hi"} ]\t}\n \n`,
  },
  asks('numbers', `${hi},"max_output_tokens":5E1,"temperature":1.0,"top_p":1e0,"x":${numbers}`),
  asks('escapes', `${limit},"instructions":"${escapes}","input":"${escapes}"`),
  asks('scripts', `${limit},${user(`{"type":"input_text","text":"${scripts}"}`)}`),
  {
    name: 'an escaped name',
    text: String.raw`{"mod\u0065l":"small",${hi},"max\u005foutput\u005ftokens":50}`,
  },
  asks(
    'roles',
    `${limit},"input":[{"type":"message","role":"developer","content":"d"},{"role":"system","content":"s"},{"role":"user","content":"u"},{"type":"message","id":"msg_1","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"a","annotations":[],"logprobs":[]}]}]`,
  ),
  asks(
    'a tool',
    `${hi},${limit},"tools":[${tool}],"tool_choice":{"type":"function","name":"read_file"},"parallel_tool_calls":false`,
  ),
  asks(
    'results of tools',
    `${limit},"tools":[${tool}],"input":[{"role":"user","content":"hi"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA\\/=="},{"type":"function_call","id":"fc_1","call_id":"call_1","name":"read_file","arguments":"{\\"n\\": 9007199254740993}","status":"completed"},{"type":"function_call_output","call_id":"call_1","output":[{"type":"input_text","text":"1.0"},{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo=","detail":"auto"}]}]`,
  ),
  asks(
    'a custom tool',
    `${limit},"tools":[{"type":"custom","name":"apply_patch","format":{"type":"grammar","syntax":"lark","definition":"start: /a\\\\/b/"}}],"input":[{"type":"custom_tool_call","call_id":"c","name":"apply_patch","input":"*** Begin\\n"},{"type":"custom_tool_call_output","call_id":"c","output":"ok"}]`,
  ),
  asks(
    'a shell',
    `${limit},"tools":[{"type":"local_shell"},{"type":"shell","environment":{"type":"container_auto"}},{"type":"apply_patch"}],"input":[{"type":"local_shell_call","id":"l","call_id":"c","status":"completed","action":{"type":"exec","command":["ls"],"env":{}}},{"type":"local_shell_call_output","id":"l","output":"a"}]`,
  ),
  asks(
    'tools of the provider',
    `${hi},${limit},"tools":[{"type":"web_search","filters":{"allowed_domains":["x.test"]},"search_context_size":"low"},{"type":"file_search","vector_store_ids":["vs_1"],"ranking_options":{"score_threshold":0.50}},{"type":"code_interpreter","container":{"type":"auto"}},{"type":"image_generation","quality":"low"},{"type":"computer_use_preview","display_width":1024.0,"display_height":768,"environment":"browser"}]`,
  ),
  asks(
    'servers of tools',
    `${hi},${limit},"tools":[{"type":"mcp","server_label":"x","server_url":"https://x.test/mcp","require_approval":"never","headers":{"a":"b"}},{"type":"namespace","name":"n","description":"d","tools":[${tool}]}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"mcp","server_label":"x"}]}`,
  ),
  asks(
    'what a tool of the provider has found',
    `${limit},"input":[{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"é"}},{"type":"mcp_approval_response","approval_request_id":"a","approve":true},{"type":"item_reference","id":"msg_1"},{"role":"user","content":"and?"}]`,
  ),
  asks(
    'an image',
    `${limit},${user('{"type":"input_text","text":"what?"}', '{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo=","detail":"low"}')}`,
  ),
  asks(
    'an image by id and by address',
    `${limit},${user('{"type":"input_image","file_id":"file-1"}', '{"type":"input_image","image_url":"https:\\/\\/x.test\\/a.png?b=c&d","detail":"high"}')}`,
  ),
  asks(
    'files',
    `${limit},${user('{"type":"input_file","filename":"ä.pdf","file_data":"data:application/pdf;base64,JVBERi0="}', '{"type":"input_file","file_url":"https://x.test/a.pdf"}', '{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}}')}`,
  ),
  asks(
    'a schema',
    `${hi},${limit},"text":{"format":{"type":"json_schema","name":"rate","strict":true,"schema":{"type":"object","properties":{"r":{"type":"number","multipleOf":0.10}},"required":["r"],"additionalProperties":false}},"verbosity":"low"}`,
  ),
  asks(
    'reasoning',
    `${hi},${limit},"reasoning":{"effort":"xhigh","summary":"detailed","x":1.0},"include":["reasoning.encrypted_content","message.output_text.logprobs"],"top_logprobs":5,"store":false`,
  ),
  asks(
    'a conversation of the provider',
    `${hi},${limit},"previous_response_id":"resp_provider","store":true,"truncation":"auto"`,
  ),
  asks(
    'a conversation by id',
    `${hi},${limit},"conversation":{"id":"conv_1"},"background":false,"max_tool_calls":3`,
  ),
  asks('a prompt by id', `${limit},"prompt":{"id":"pmpt_1","version":"2","variables":{"a":"b"}}`),
  asks(
    'services',
    `${hi},${limit},"metadata":{"a":"b"},"service_tier":"flex","prompt_cache_key":"k","prompt_cache_retention":"24h","safety_identifier":"s","user":"u-1"`,
  ),
  asks('options of streams', `${hi},${limit},"client_metadata":{"x":"y"},"moderation":null`),
  asks(
    'an item of the context',
    `${limit},"context_management":[{"type":"compaction","compact_threshold":200000.0}],"input":[{"type":"compaction","id":"cmp_1","encrypted_content":"gAAA=="},{"role":"user","content":"hi"}]`,
  ),
  asks(
    'fields of next year',
    `${future},${limit},"input":[{"type":"x_item","x":${numbers}},{"role":"user","content":"hi","x":1.0}]`,
  ),
  asks(
    'names that come twice',
    `${hi},${limit},"temperature":0.1,"temperature":0.2,"model":"small","x":1,"x":2,"input":[{"role":"user","role":"user","content":"a","content":"b"}]`,
  ),
  asks(
    'nothing',
    `${hi},${limit},"instructions":null,"tools":null,"tool_choice":null,"previous_response_id":null,"text":null,"reasoning":null,"store":null,"user":null`,
  ),
  asks(
    'empty lists',
    `"tools":[],"include":[],"metadata":{},${limit},"input":[{"role":"user","content":[]},{"role":"user","content":""}]`,
  ),
];

const usage =
  '"usage":{"input_tokens":11,"input_tokens_details":{"cached_tokens":3},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":18,"x_time":1.0}';
const head = '"id":"resp_1","object":"response","created_at":1700000000,"model":"small-2026-01-01"';
const echoed = '"instructions":null,"temperature":1.0,"top_p":0.98,"tools":[],"store":true,"metadata":{}';

interface Item {
  readonly whole: string;
  readonly begin: string;
  /** Names and members of the events between its begin and its end. */
  readonly between: readonly (readonly [name: string, members: string])[];
}

interface Ended {
  readonly status?: string;
  readonly more?: string;
}

function says(
  name: string,
  items: readonly Item[],
  { status = 'completed', more = '' }: Ended = {},
): WrittenAnswer {
  let number = 0;
  const event = (type: string, members: string): string => {
    number += 1;
    return `event: ${type}\ndata: {"type":"${type}","sequence_number":${number - 1},${members}}\n\n`;
  };
  const output = items.map(({ whole }) => whole).join(',');
  const whole = `{${head},"status":"${status}","error":null,"incomplete_details":null,${echoed},"output":[${output}],${usage}${more}}`;
  const begun = `"response":{${head},"status":"in_progress","output":[],"usage":null,${echoed}}`;
  return {
    name,
    whole,
    events: [
      event('response.created', begun),
      event('response.in_progress', begun),
      ...items.flatMap(({ whole: item, begin, between }, index) => [
        event('response.output_item.added', `"output_index":${index},"item":${begin}`),
        ...between.map(([type, members]) => event(`response.${type}`, `"output_index":${index},${members}`)),
        event('response.output_item.done', `"output_index":${index},"item":${item}`),
      ]),
      event(`response.${status}`, `"response":${whole}`),
    ].join(''),
  };
}

function text(...pieces: readonly string[]): Item {
  const part = `{"type":"output_text","text":"${pieces.join('')}","annotations":[],"logprobs":[]}`;
  const at = '"item_id":"msg_1","content_index":0';
  return {
    whole: `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[${part}]}`,
    begin: '{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}',
    between: [
      ['content_part.added', `${at},"part":{"type":"output_text","text":"","annotations":[]}`],
      ...pieces.map(
        (piece) =>
          ['output_text.delta', `${at},"delta":"${piece}","logprobs":[],"obfuscation":"xY3"`] as const,
      ),
      ['output_text.done', `${at},"text":"${pieces.join('')}"`],
      ['content_part.done', `${at},"part":${part}`],
    ],
  };
}

function call(id: string, ...pieces: readonly string[]): Item {
  const of = (written: string, status: string) =>
    `{"id":"fc_${id}","type":"function_call","status":"${status}","call_id":"${id}","name":"f","arguments":${JSON.stringify(written)}}`;
  return {
    whole: of(pieces.join(''), 'completed'),
    begin: of('', 'in_progress'),
    between: [
      ...pieces.map(
        (piece) =>
          ['function_call_arguments.delta', `"item_id":"fc_${id}","delta":${JSON.stringify(piece)}`] as const,
      ),
      ['function_call_arguments.done', `"item_id":"fc_${id}","arguments":${JSON.stringify(pieces.join(''))}`],
    ],
  };
}

function once(whole: string, ...between: readonly (readonly [string, string])[]): Item {
  return {
    whole,
    begin: whole,
    between,
  };
}

const reasoning: Item = {
  whole: String.raw`{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm \u00e9"}],"encrypted_content":"gAAA\/=="}`,
  begin: '{"id":"rs_1","type":"reasoning","summary":[]}',
  between: [
    [
      'reasoning_summary_part.added',
      '"item_id":"rs_1","summary_index":0,"part":{"type":"summary_text","text":""}',
    ],
    ['reasoning_summary_text.delta', String.raw`"item_id":"rs_1","summary_index":0,"delta":"hm \u00e9"`],
    [
      'reasoning_summary_part.done',
      '"item_id":"rs_1","summary_index":0,"part":{"type":"summary_text","text":"hm é"}',
    ],
  ],
};
const searched = once(
  '{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"é","sources":[{"type":"url","url":"https:\\/\\/x.test"}]}}',
  ['web_search_call.in_progress', '"item_id":"ws_1"'],
  ['web_search_call.searching', '"item_id":"ws_1"'],
  ['web_search_call.completed', '"item_id":"ws_1"'],
);
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
  says('a call', [call('c1', '{"n": 900719925474', '0993,"r":1.0}')]),
  says('a call without arguments', [call('c1', '{}')]),
  says('calls in parallel', [text('So.'), call('c1', '{"a":', '1.0}'), call('c2', '[-0]')]),
  says('a custom call', [
    once(
      String.raw`{"id":"ctc_1","type":"custom_tool_call","status":"completed","call_id":"c","name":"apply_patch","input":"*** Begin\n"}`,
      ['custom_tool_call_input.delta', '"item_id":"ctc_1","delta":"*** Begin"'],
      ['custom_tool_call_input.done', String.raw`"item_id":"ctc_1","input":"*** Begin\n"`],
    ),
  ]),
  says('a shell', [
    once(
      '{"id":"lsh_1","type":"local_shell_call","status":"completed","call_id":"c","action":{"type":"exec","command":["ls"],"env":{},"timeout_ms":1e3}}',
    ),
  ]),
  says('reasoning', [reasoning, text('4')]),
  says('reasoning and a call', [reasoning, call('c1', '{}')]),
  says('reasoning in the open', [
    once(
      '{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}',
      ['reasoning_text.delta', '"item_id":"rs_1","content_index":0,"delta":"hm"'],
      ['reasoning_text.done', '"item_id":"rs_1","content_index":0,"text":"hm"'],
    ),
    text('4'),
  ]),
  says('a search', [searched, text('a')]),
  says('sources', [
    once(
      '{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[{"type":"url_citation","url":"https://x.test","title":"T","start_index":0,"end_index":1}]}]}',
      [
        'output_text.annotation.added',
        '"item_id":"msg_1","content_index":0,"annotation_index":0,"annotation":{"type":"url_citation","url":"https://x.test","title":"T","start_index":0,"end_index":1}',
      ],
    ),
  ]),
  says('a search in files', [
    once(
      '{"id":"fs_1","type":"file_search_call","status":"completed","queries":["é"],"results":[{"file_id":"file-1","filename":"ä","score":0.950,"text":"t","attributes":{}}]}',
    ),
    text('a'),
  ]),
  says('a program', [
    once(
      '{"id":"ci_1","type":"code_interpreter_call","status":"completed","container_id":"cntr_1","code":"1/3\\n","outputs":[{"type":"logs","logs":"0.3"}]}',
      ['code_interpreter_call_code.delta', '"item_id":"ci_1","delta":"1/3"'],
    ),
    text('a'),
  ]),
  says('an image', [
    once('{"id":"ig_1","type":"image_generation_call","status":"completed","result":"iVBORw0KGgo="}', [
      'image_generation_call.partial_image',
      '"item_id":"ig_1","partial_image_index":0,"partial_image_b64":"iVBORw0K"',
    ]),
  ]),
  says('a tool of a server', [
    once(
      '{"id":"mcpl_1","type":"mcp_list_tools","server_label":"x","tools":[{"name":"t","input_schema":{},"annotations":null}]}',
    ),
    once(
      '{"id":"mcp_1","type":"mcp_call","status":"completed","server_label":"x","name":"t","arguments":"{}","output":"é","error":null}',
      ['mcp_call.in_progress', '"item_id":"mcp_1"'],
    ),
  ]),
  says('a computer', [
    once(
      '{"id":"cu_1","type":"computer_call","status":"completed","call_id":"c","action":{"type":"click","button":"left","x":1.0,"y":2},"pending_safety_checks":[]}',
    ),
  ]),
  says('a refusal', [
    once(
      '{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"refusal","refusal":"I can’t."}]}',
      ['refusal.delta', '"item_id":"msg_1","content_index":0,"delta":"I can’t."'],
    ),
  ]),
  says('an answer that was cut', [text('a')], {
    status: 'incomplete',
    more: ',"incomplete_details":{"reason":"max_output_tokens"}',
  }),
  says('a filter', [], { status: 'incomplete', more: ',"incomplete_details":{"reason":"content_filter"}' }),
  says('nothing', []),
  says('an item of next year', [
    once(`{"id":"x_1","type":"x_item","x":${numbers}}`, ['x_item.delta', `"x":${numbers}`]),
    text('a'),
  ]),
  says('a long text', [text('漢\\u0001😀x'.repeat(6_000))]),
  written(
    'comments and pings',
    (events) =>
      `: hi\n\n${events.replaceAll('event: response.output_text.done', ':\n\nevent: keepalive\ndata: {"type":"keepalive","sequence_number":9}\n\nevent: response.output_text.done')}`,
    `\n\n  ${plain.whole}\n`,
  ),
  written(
    'carriage returns',
    (events) => events.replaceAll('\n', '\r\n'),
    plain.whole.replaceAll(',"', ',\r\n\t"'),
  ),
  written('no names of events, no spaces', (events) =>
    events.replace(/event: [\w.]+\n/g, '').replaceAll('data: {', 'data:{'),
  ),
  written(
    'an unknown event',
    (events) =>
      `event: codex.rate_limits\nid: 7\nretry: 3000\ndata: {"type":"codex.rate_limits","x":${numbers},\ndata: "y":1}\n\n${events}`.trimEnd(),
    ` ${plain.whole}`,
  ),
];

export const responsesExchanges = pairUp(requests, answers);
