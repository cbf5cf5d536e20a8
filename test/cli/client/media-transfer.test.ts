import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
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

it('deletes a download that differs from the stored file', async () => {
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

const large = Buffer.alloc(17_000_000, 'film');
const hex = createHash('sha256').update(large).digest('hex');

it('announces a large file, sends its parts without the key, and prints the answer of the server', async () => {
  const file = join(await aFolder(), 'clip.mp4');
  await writeFile(file, large);
  const requests: unknown[] = [];
  const url = await serve(async (request, response) => {
    const body = await buffer(request);
    const { authorization, 'content-length': length } = request.headers;
    requests.push([request.method, request.url, authorization, length]);
    if (request.url?.endsWith('/upload')) {
      expect(JSON.parse(body.toString())).toEqual({
        size: large.length,
        sha256: hex,
        content_type: 'video/mp4',
      });
      const parts = [
        { url: '/bucket?part=1', headers: { 'content-length': '16777216' } },
        { url: '/bucket?part=2', headers: { 'content-length': '222784' } },
      ];
      const ticket = { parts, complete_url: '/v1/uploads/token', expires_at: new Date().toISOString() };
      response.writeHead(201).end(JSON.stringify(ticket));
    } else if (request.method === 'PUT') {
      const from = request.url?.endsWith('1') ? 0 : 16_777_216;
      response.writeHead(large.subarray(from, from + body.length).equals(body) ? 200 : 400).end();
    } else response.end('{"reference":"media://job_1/clip.mp4"}');
  });
  const { shell, seen } = aShell();
  const args = ['media', 'put', file, 'media://job_1/clip.mp4', '--json', '--url', url, '--key', 'k'];
  await runCapstan(args, shell);
  expect(seen.stderr).toBe('');
  expect(JSON.parse(seen.stdout)).toEqual({ reference: 'media://job_1/clip.mp4' });
  expect(requests).toEqual([
    ['POST', '/v1/media/job_1/clip.mp4/upload', 'Bearer k', expect.any(String)],
    ['PUT', '/bucket?part=1', undefined, '16777216'],
    ['PUT', '/bucket?part=2', undefined, '222784'],
    ['POST', '/v1/uploads/token', undefined, '0'],
  ]);
});

it('prints why a large file was refused during its upload', async () => {
  const file = join(await aFolder(), 'clip.mp4');
  await writeFile(file, large);
  const url = await serve(async (request, response) => {
    await buffer(request);
    const headers = { 'content-length': String(large.length) };
    const ticket = { url: '/v1/uploads/x', headers, expires_at: new Date().toISOString() };
    const problem = { code: 'digest_mismatch', detail: 'another file' };
    if (request.method === 'POST') response.writeHead(201).end(JSON.stringify(ticket));
    else response.writeHead(422).end(JSON.stringify(problem));
  });
  const { shell, seen } = aShell();
  await runCapstan(['media', 'put', file, 'media://job_1/clip.mp4', '--url', url, '--key', 'k'], shell);
  expect([seen.exitCode, seen.stderr]).toEqual([1, expect.stringContaining('digest_mismatch')]);
});

it('uploads files to a new job and prints their references, or creates none if a file cannot be read', async () => {
  const folder = await aFolder();
  const files = ['one.mp3', 'two.mp3'].map((name) => join(folder, name));
  for (const file of files) await writeFile(file, basename(file));
  const requests: string[] = [];
  const url = await serve(async (request, response) => {
    const body = await buffer(request);
    requests.push(`${request.method} ${request.url} ${body}`);
    if (request.url === '/v1/jobs') return void response.writeHead(201).end('{"job_id":"job_9"}');
    response.end('{"reference":"x"}');
  });
  const upload = async (...words: string[]) => {
    const { shell, seen } = aShell();
    await runCapstan(['media', 'new', ...words, '--url', url, '--key', 'k'], shell);
    return seen;
  };
  expect(await upload(...files, join(folder, 'none.mp3'))).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('cannot read'),
  });
  expect(await upload(...files, join(folder, '..', basename(folder), 'one.mp3'))).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('two of the files have the name one.mp3'),
  });
  expect(requests).toEqual([]);
  expect(await upload(...files)).toMatchObject({
    exitCode: 0,
    stdout: 'media://job_9/one.mp3\nmedia://job_9/two.mp3\n',
  });
  expect(requests).toEqual([
    'POST /v1/jobs {"job":{}}',
    'PUT /v1/media/job_9/one.mp3 one.mp3',
    'PUT /v1/media/job_9/two.mp3 two.mp3',
  ]);
});

it('follows a file to where its bytes are, without the key, and checks them', async () => {
  const folder = await aFolder();
  const keys: unknown[] = [];
  const bucket = await serve((request, response) => {
    keys.push(request.headers.authorization);
    response.end(content);
  });
  const leads = (digest: string) =>
    serve((_, response) => {
      response.writeHead(307, { location: `${bucket}/a.mp4`, 'repr-digest': digest }).end();
    });
  expect((await get(await leads(digestOf(content)), join(folder, 'a.mp4'))).exitCode).toBe(0);
  expect(await readFile(join(folder, 'a.mp4'))).toEqual(content);
  expect((await get(await leads(digestOf(Buffer.from('other'))), join(folder, 'b.mp4'))).exitCode).toBe(2);
  expect([keys, await readdir(folder)]).toEqual([[undefined, undefined], ['a.mp4']]);
});
