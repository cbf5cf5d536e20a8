/**
 * What everybody calls in the end: capabilities (`/NAME/exec`, `/NAME/health`, `/NAME/spec`) and a model in each protocol,
 * which answer at once and with the same 200 characters. A stream brings them in twenty pieces, each written on its own.
 */
import { createServer, type ServerResponse } from 'node:http';
import { answerPieces, answerText, paths, protocols } from './payload.ts';
import { providerAnswers } from './provider-answers.ts';

const [port = ''] = process.argv.slice(2);
const version = '1.0.0';

function describe(name: string): object {
  const [field, type] = name.startsWith('model.') ? ['messages', 'array'] : ['text', 'string'];
  return {
    name,
    version,
    description: 'answers at once',
    input: { type: 'object', required: [field], properties: { [field]: { type } } },
    output: { type: 'object', required: ['text'], properties: { text: { type: 'string' } } },
    cost_model: { type: 'free', rate_usd: 0 },
  };
}

const execAnswer = JSON.stringify({
  ok: true,
  output: { text: answerText, usage: { input_tokens: 50, output_tokens: 50 } },
});
const execStream: readonly string[] = [
  ...answerPieces.map((content) => `${JSON.stringify({ delta: { content } })}\n`),
  `${execAnswer}\n`,
];

const countedTokens = JSON.stringify({ object: 'response.input_tokens', input_tokens: 50 });

function send(response: ServerResponse, body: string): void {
  response.writeHead(200, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}

function stream(response: ServerResponse, type: string, pieces: readonly string[]): void {
  response.writeHead(200, { 'content-type': type });
  const write = (at: number): void => {
    if (at === pieces.length - 1) return void response.end(pieces[at]);
    response.write(pieces[at] ?? '');
    setImmediate(write, at + 1);
  };
  write(0);
}

const server = createServer((request, response) => {
  const { url = '', headers } = request;
  let body = '';
  request.setEncoding('utf8').on('data', (text) => {
    body += text;
  });
  request.on('end', () => {
    const [, name = '', document] = /^\/([^/]+)\/(health|spec)$/.exec(url) ?? [];
    if (document === 'spec') return send(response, JSON.stringify(describe(name)));
    if (document === 'health')
      return send(response, JSON.stringify({ status: 'ok', name, version, uptime_ms: 1 }));
    // A gateway that reserves costs asks for the tokens first.
    if (/\/(count_tokens|input_tokens)$/.test(url)) return send(response, countedTokens);
    const protocol = protocols.find((name) => url.split('?', 1)[0] === paths[name].provider);
    if (protocol === undefined) {
      if (headers['x-stream'] === 'delta') stream(response, 'application/x-ndjson', execStream);
      else send(response, execAnswer);
    } else if (/"stream":\s*true/.test(body)) {
      stream(response, 'text/event-stream', providerAnswers[protocol].stream);
    } else send(response, providerAnswers[protocol].whole);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(Number(port), '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
