/**
 * One process that answers `POST /v1/capabilities/{name}/exec` without routing anything: the compiled app of a checkout
 * over services that answer at once, or, without a folder, Node's own server with nothing but JSON.parse and
 * JSON.stringify. Its parent asks it over IPC what processor time it has used.
 */
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { pino } from 'pino';

const holder = { key_id: 'key_bench', scopes: new Set(['capability:call']), projects: ['prj_bench'] };

/** What its parent sends. */
const sent = { text: 'answer '.repeat(30) };

const answerTo = (input) => {
  const routing = { decision_id: 'dec_bench', chosen: 'ins_bench', tier: 'free', cost_usd: 0, attempt: 1 };
  return { ok: true, output: input, routing };
};

/** What checkouts before the context of a process ask. */
const services = {
  access: { identify: async () => holder },
  calls: { exec: async ({ request }) => ({ answer: answerTo(request.input) }) },
};

const listenerOf = async (folder) => {
  const load = (...places) => {
    const found = places.map((place) => resolve(join(folder, 'dist', place))).find(existsSync);
    return import(pathToFileURL(found).href);
  };
  const { createApp } = await load('src/api/app.js');
  const { noTelemetry: telemetry } = await load(
    'packages/core/src/telemetry/telemetry.js',
    'src/core/telemetry/telemetry.js',
  );
  const sizes = { BODY_LIMIT_BYTES: 1e6, DEFINITION_LIMIT_BYTES: 1e6, MEDIA_LIMIT_BYTES: 1e6 };
  const config = { ...sizes, RATE_LIMITS: 'off' };
  const logger = pino({ level: 'warn' });
  const of = () => ({ instances: [{}], priorMs: 1 });
  const ctx = {
    config,
    logger,
    telemetry,
    verifiedKeys: { get: () => holder },
    fleet: { of, seenBy: () => ({ of }) },
    openCalls: { run: async () => answerTo(sent) },
  };
  return createApp({ ctx, services, config, logger }).handle;
};

const bare = (request, response) => {
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    const body = Buffer.from(JSON.stringify(answerTo(JSON.parse(Buffer.concat(parts).toString()).input)));
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body);
  });
};

const [folder] = process.argv.slice(2);
const server = createServer(folder === undefined ? bare : await listenerOf(folder));
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
process.on('message', () => process.send(process.cpuUsage()));
process.on('disconnect', () => process.exit());
