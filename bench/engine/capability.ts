/** The capability that both sides call: it answers its input at once. */
import { createServer } from 'node:http';

const [name = '', port = ''] = process.argv.slice(2);
const version = '1.0.0';
const schema = {
  type: 'object',
  required: ['n', 'text'],
  properties: { n: { type: 'integer' }, text: { type: 'string' } },
};
const spec = {
  ...{ name, version, description: 'answers its input', input: schema, output: schema },
  cost_model: { type: 'free', rate_usd: 0 },
};

const server = createServer((request, response) => {
  const answer = (body: string): void => {
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    });
    response.end(body);
  };
  if (request.url === '/spec') return answer(JSON.stringify(spec));
  if (request.url === '/health') {
    return answer(JSON.stringify({ status: 'ok', name, version, uptime_ms: process.uptime() * 1_000 }));
  }
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => answer(`{"ok":true,"output":${Buffer.concat(chunks)}}`));
});
server.keepAliveTimeout = 60_000;
server.listen(Number(port), '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
