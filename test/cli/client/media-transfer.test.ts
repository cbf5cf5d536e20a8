import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { runCapstan } from '../../../src/cli/program.ts';
import { serve } from '../support/http-server.ts';
import { aShell } from '../support/shell.ts';

const content = Buffer.from('not really a film');
function digestOf(bytes: Buffer): string {
  return `sha-256=:${createHash('sha256').update(bytes).digest('base64')}:`;
}

async function aFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'capstan-media-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

function answerWith(digest: string) {
  return (_: IncomingMessage, response: ServerResponse) => {
    response.writeHead(200, { 'repr-digest': digest }).end(content);
  };
}

async function get(url: string, target: string) {
  const { shell, seen } = aShell();
  await runCapstan(['media', 'get', 'media://job_1/a.mp4', '-o', target, '--url', url, '--key', 'k'], shell);
  return seen;
}

it('saves a file under its name when it is complete', async () => {
  const folder = await aFolder();
  const seen = await get(await serve(answerWith(digestOf(content))), join(folder, 'a.mp4'));
  expect(seen.exitCode).toBe(0);
  expect(await readFile(join(folder, 'a.mp4'))).toEqual(content);
  expect(await readdir(folder)).toEqual(['a.mp4']);
});

it('leaves nothing behind when what arrives is not what the server stores', async () => {
  const folder = await aFolder();
  const seen = await get(await serve(answerWith(digestOf(Buffer.from('other')))), join(folder, 'a.mp4'));
  expect(seen.exitCode).toBe(2);
  expect(await readdir(folder)).toEqual([]);
});

it('creates the job, uploads its files with their length and type, then starts the run of that job', async () => {
  const file = join(await aFolder(), 'clip.mp4');
  await writeFile(file, content);
  const requests: unknown[] = [];
  const url = await serve(async (request, response) => {
    const body = (await buffer(request)).toString();
    const { 'content-type': type, 'content-length': length } = request.headers;
    requests.push(`${request.method} ${request.url} ${type} ${length === String(body.length)} ${body}`);
    if (request.url === '/v1/jobs') response.end('{"job_id":"job_1"}');
    else response.writeHead(request.method === 'PUT' ? 201 : 404).end('{}');
  });
  const { shell } = aShell();
  const job = '{"clip":"media://job/a.mp4"}';
  await runCapstan(['run', 'p', '--job', job, '-f', `a.mp4=${file}`, '--url', url, '--key', 'k'], shell);
  expect(requests).toEqual([
    `POST /v1/jobs application/json true {"job":${job}}`,
    `PUT /v1/media/job_1/a.mp4 video/mp4 true ${content}`,
    'POST /v1/runs application/json true {"pipeline":"p","job_id":"job_1"}',
  ]);
});

it('creates nothing when a file that should be uploaded is not there', async () => {
  let requests = 0;
  const url = await serve((_, response) => {
    requests += 1;
    response.end('{"job_id":"job_1"}');
  });
  const { shell, seen } = aShell();
  await runCapstan(['run', 'p', '-f', 'a.mp4=/does/not/exist', '--url', url, '--key', 'k'], shell);
  expect([requests, seen.exitCode, seen.stderr]).toEqual([
    0,
    1,
    'error usage: cannot read /does/not/exist\n',
  ]);
});
