/** A floor: a bare Koa handler that reads the body and posts it on with undici. */
import Koa from 'koa';
import { Agent } from 'undici';

const [upstream = '', port = ''] = process.argv.slice(2);
const agent = new Agent({ connections: 512, pipelining: 1 });
const app = new Koa();
app.use(async (ctx) => {
  const chunks = [];
  for await (const chunk of ctx.req) chunks.push(chunk);
  const answer = await agent.request({
    origin: upstream,
    path: ctx.path,
    method: 'POST',
    body: Buffer.concat(chunks),
    headers: { 'content-type': 'application/json' },
  });
  ctx.status = answer.statusCode;
  ctx.type = 'application/json';
  ctx.body = Buffer.from(await answer.body.arrayBuffer());
});
const server = app.listen(Number(port), '127.0.0.1');
server.keepAliveTimeout = 60_000;
process.on('SIGTERM', () => process.exit(0));
