/**
 * What everybody calls in the end: a capability (`/exec`, `/health`, `/spec`) and a chat model, which answer at once
 * and with the same 200 characters.
 */
import { createServer } from 'node:http';
import { answerText } from './payload.ts';

const [name = '', port = ''] = process.argv.slice(2);
const version = '1.0.0';
const schema = { type: 'object', required: ['text'], properties: { text: { type: 'string' } } };
const documents: Readonly<Record<string, () => object>> = {
  '/health': () => ({ status: 'ok', name, version, uptime_ms: process.uptime() * 1_000 }),
  '/spec': () => ({
    name,
    version,
    description: 'answers at once',
    input: schema,
    output: schema,
    cost_model: { type: 'free', rate_usd: 0 },
  }),
};
const execAnswer = JSON.stringify({ ok: true, output: { text: answerText } });
const message = { role: 'assistant', content: answerText };
const chatAnswer = JSON.stringify({
  id: 'chat-1',
  object: 'chat.completion',
  created: 1,
  model: 'bench',
  choices: [{ index: 0, message, finish_reason: 'stop' }],
  usage: { prompt_tokens: 50, completion_tokens: 50, total_tokens: 100 },
});

const server = createServer((request, response) => {
  request.resume().on('end', () => {
    const { url = '' } = request;
    const document = documents[url];
    const body =
      document === undefined
        ? url.endsWith('/chat/completions')
          ? chatAnswer
          : execAnswer
        : JSON.stringify(document());
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    });
    response.end(body);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(Number(port), '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
