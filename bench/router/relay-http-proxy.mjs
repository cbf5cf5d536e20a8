/** A floor: http-proxy with kept-alive connections, which looks at nothing. */
import { Agent, createServer } from 'node:http';
import httpProxy from 'http-proxy';

const [upstream = '', port = ''] = process.argv.slice(2);
const proxy = httpProxy.createProxyServer({ target: upstream, agent: new Agent({ keepAlive: true }) });
const server = createServer((request, response) => proxy.web(request, response));
server.keepAliveTimeout = 60_000;
server.listen(Number(port), '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
