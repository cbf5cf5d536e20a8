import { once } from 'node:events';
import { readdir, stat, utimes, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { keptAnswerHours } from '@capstan/core/contracts/limits';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { type ProviderServer, startProviderServer } from '../../../test/support/provider-server.ts';
import { waitFor } from '../../../test/support/wait.ts';
import { aFolder } from '../../capability/test/support/folders.ts';
import { call, callInLines, failedChecks, findingsOf, linesOf, startWrapped } from './support.ts';

let server: ProviderServer;
beforeEach(async () => {
  server = await startProviderServer();
  onTestFinished(() => server.close());
});

function anHttp(part: string, more = ''): string {
  return `kind: http
name: remote
version: 1.0.0
description: Asks a service.
input: {type: object, required: [id], properties: {id: {type: string}}}
output: {type: object}
max_concurrency: 4
${more}http:
${part}`;
}

const environment = () => ({ SERVICE_URL: server.url, SERVICE_KEY: 'a-secret-key' });

it('sends templates as path, headers and body, and keeps the contract', async () => {
  const text = anHttp(
    `  url: "\${SERVICE_URL}/echo/{{ input.id }}?size={{ input.size ?? 1 }}"
  headers: {authorization: "Bearer \${SERVICE_KEY}", x-none: "{{ input.none ?? null }}"}
  body: {of: "{{ input.id }}", list: "{{ input.list ?? null }}"}
`,
    'result: {path: "{{ answer.path }}", body: "{{ answer.body }}", key: "{{ answer.headers.authorization }}"}\n',
  );
  const instance = await startWrapped(text, { environment: environment() });
  const answer = await call(instance, { id: 'a/b?c', list: [1] });
  expect(answer.body.output).toEqual({
    path: '/echo/a%2Fb%3Fc?size=1',
    body: { of: 'a/b?c', list: [1] },
    key: 'Bearer a-secret-key',
  });
  expect(server.requests[0]?.headers).not.toHaveProperty('x-none');
  expect(await failedChecks(instance, { id: 'a' })).toEqual([]);
});

it('passes numbers of an answer on as they are written', async () => {
  const written = '{"id":7615917337495251231,"list":[1700000000.123456789]}';
  const other = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(written);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void other.close());
  await once(other, 'listening');
  const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  const text = anHttp(`  url: "${url}/exact"\n`, 'result: {all: "{{ answer }}", id: "{{ answer.id }}"}\n');
  const instance = await startWrapped(text);
  const answer = await fetch(`${instance.endpoint}/exec`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"id":"a"}',
  });
  expect(await answer.text()).toContain(`{"all":${written},"id":7615917337495251231}`);
});

it('sends a downloaded file in a form, and as a data URI in a body', async () => {
  const files =
    'files: {download: {clip: {from: "{{ input.id }}", as: path}, small: "{{ input.id }}"}}\nresult: {got: "{{ answer.body }}"}\n';
  const form = await startWrapped(
    anHttp(`  url: "${server.url}/echo"\n  form: {file: "{{ files.clip }}", n: "{{ 2 }}"}\n`, files),
  );
  await form.put('media://job/a.png', 'PIXELS');
  const got = String((await call(form, { id: 'media://job/a.png' })).body.output?.got);
  expect(got).toMatch(/name="file"; filename="\d-a.png"\r\nContent-Type: image\/png\r\n\r\nPIXELS\r\n/);
  expect(got).toMatch(/name="n"\r\n\r\n2\r\n/);
  const body = await startWrapped(
    anHttp(`  url: "${server.url}/echo"\n  body: {image: "{{ files.small }}"}\n`, files),
  );
  await body.put('media://job/a.png', 'PIXELS');
  expect((await call(body, { id: 'media://job/a.png' })).body.output).toEqual({
    got: { image: 'data:image/png;base64,UElYRUxT' },
  });
});

it('stores a file that is the answer, or that an address in the answer names', async () => {
  const whole = await startWrapped(
    anHttp(
      `  method: GET\n  url: "${server.url}/image"\n`,
      'files: {upload: {out: {to: "{{ input.id }}", from: "{{ answer.file }}"}}}\nresult: {out: "{{ files.out }}"}\n',
    ),
  );
  expect((await call(whole, { id: 'media://job/out.png' })).body.output).toEqual({
    out: 'media://job/out.png',
  });
  expect((await whole.get('media://job/out.png')).subarray(1, 4).toString()).toBe('PNG');
  const named = await startWrapped(
    anHttp(
      `  url: "${server.url}/echo"\n  body: {urls: ["${server.url}/image/1", "${server.url}/image/2"]}\n`,
      'files: {upload: {out: {to: "{{ input.id }}", from: "{{ answer.body.urls }}"}}}\nresult: {out: "{{ files.out }}"}\n',
    ),
  );
  expect((await call(named, { id: 'media://job/o.png' })).body.output).toEqual({
    out: ['media://job/o.png', 'media://job/o-2.png'],
  });
  expect((await named.get('media://job/o-2.png')).length).toBe(4);
});

it('stores a text as it is, and refuses to take it for base64', async () => {
  const files = (as: string) =>
    `files: {upload: {out: {to: "{{ input.id }}", from: "{{ answer }}"${as}}}}\nresult: {}\n`;
  const part = `  method: GET\n  url: "${server.url}/text"\n`;
  const text = await startWrapped(anHttp(part, files(', as: text')));
  expect(await call(text, { id: 'media://job/a.txt' })).toMatchObject({ status: 200 });
  expect((await text.get('media://job/a.txt')).toString()).toBe('a text!');
  const file = await startWrapped(anHttp(part, files('')));
  expect(await call(file, { id: 'media://job/a.txt' })).toMatchObject({
    status: 502,
    code: 'answer_unexpected',
  });
});

it.each([
  [401, 502, 'provider_config'],
  [404, 502, 'provider_config'],
  [422, 422, 'provider_refused'],
  [429, 503, 'provider_busy'],
  [500, 502, 'provider_unavailable'],
  [302, 502, 'provider_config'],
])('turns status %i into %i %s, without its secret', async (status, expected, code) => {
  const part = `  url: "${server.url}/echo"\n  headers: {x-api-key: "\${SERVICE_KEY}"}\n`;
  const instance = await startWrapped(anHttp(part), { environment: environment() });
  server.refuse(status);
  const answer = await call(instance, { id: 'a' });
  expect(answer).toMatchObject({ status: expected, code });
  expect(answer.body.error).toContain(`/echo was answered ${status}: {"error":"as the test asked"}`);
});

it('answers 502 when no server listens, and 504 after the timeout', async () => {
  const gone = await startWrapped(anHttp('  url: "http://127.0.0.1:9/x"\n'));
  expect(await call(gone, { id: 'a' })).toMatchObject({ status: 502, code: 'provider_unavailable' });
  server.onPoll(() => undefined);
  const slow = await startWrapped(aJob('timeout: 2s\n'), { environment: environment() });
  expect(await call(slow, { id: 'a' })).toMatchObject({ status: 504, code: 'timeout' });
  await waitFor('the cancel of the job', async () => server.jobs[0]?.state === 'cancelled');
});

it('answers 502 when the answer lacks what the result reads, and 422 when the input does', async () => {
  const answer = await startWrapped(
    anHttp(`  url: "${server.url}/echo"\n`, 'result: {x: "{{ answer.nothing }}"}\n'),
  );
  expect(await call(answer, { id: 'a' })).toMatchObject({ status: 502, code: 'answer_unexpected' });
  const input = await startWrapped(anHttp(`  url: "${server.url}/echo"\n  body: "{{ input.nothing }}"\n`));
  expect(await call(input, { id: 'a' })).toMatchObject({ status: 422, code: null });
});

function aJob(more = '', poll = ''): string {
  return anHttp(
    `  url: "${server.url}/jobs"
  headers: {authorization: "\${SERVICE_KEY}"}
  body: {of: "{{ input.id }}"}
  poll:
    url: "{{ submitted.status_url }}"
    every: 10ms
    done: answer.state == "done"
    failed: answer.state == "failed"
    error: "{{ answer.error }}"
    progress: "{{ answer.fraction }}"
    result_url: "{{ answer.result_url }}"
    cancel: {method: DELETE, url: "{{ submitted.status_url }}"}
${poll}`,
    more,
  );
}

it('polls a job, reports its progress and reads its result', async () => {
  const instance = await startWrapped(aJob(), { environment: environment() });
  const lines = await callInLines(instance, { id: 'a' });
  expect(lines).toEqual([
    { progress: 0.25 },
    { ok: true, output: { result: { text: 'made of {"of":"a"}' } } },
  ]);
  expect(server.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'POST /jobs',
    'GET /jobs/job-1',
    'GET /jobs/job-1',
    'GET /jobs/job-1/result',
  ]);
  expect(server.requests.every(({ headers }) => headers.authorization === 'a-secret-key')).toBe(true);
});

it('tolerates a few failed polls, and fails with the error of a failed job', async () => {
  const instance = await startWrapped(aJob(), { environment: environment() });
  server.onPoll((job) => {
    if (job.polls === 1) server.refuse(500, 503);
    else Object.assign(job, { state: 'failed', error: 'no such thing, a-secret-key' });
  });
  expect(await call(instance, { id: 'a' })).toMatchObject({
    status: 422,
    code: 'job_failed',
    body: { error: 'no such thing, ***' },
  });
  const theirs = await startWrapped(aJob('', '    on_failed: failed\n'), { environment: environment() });
  server.onPoll((job) => Object.assign(job, { state: 'failed' }));
  expect(await call(theirs, { id: 'b' })).toMatchObject({ status: 502, code: 'job_failed' });
});

it('sends no secret to another host that an answer names', async () => {
  const other = await startProviderServer();
  onTestFinished(() => other.close());
  const text = aJob().replace(
    'url: "{{ submitted.status_url }}"\n    every',
    `url: "${other.url}/jobs/{{ submitted.id }}"\n    every`,
  );
  const instance = await startWrapped(text, { environment: environment() });
  expect(await call(instance, { id: 'a' })).toMatchObject({ status: 502, code: 'provider_config' });
  expect(other.requests).toEqual([]);
});

it('cancels the job of a caller that leaves, at once without a key', async () => {
  const instance = await startWrapped(aJob(), { environment: environment() });
  server.onPoll(() => undefined);
  const leaving = new AbortController();
  const answer = call(instance, { id: 'a' }, { signal: leaving.signal }).catch(() => 'left');
  await waitFor('the job', async () => (server.jobs[0]?.polls ?? 0) > 0);
  leaving.abort();
  expect(await answer).toBe('left');
  await waitFor('its cancel', async () => server.jobs[0]?.state === 'cancelled');
});

it('finds the job of a lost call by its key, in another process too, and submits once', async () => {
  const stateDir = join(await aFolder(), 'state');
  const first = await startWrapped(aJob(), { environment: environment(), stateDir });
  server.onPoll(() => undefined);
  const leaving = new AbortController();
  const lost = call(first, { id: 'a' }, { key: 'k1', signal: leaving.signal }).catch(() => 'lost');
  await waitFor('the job', async () => (server.jobs[0]?.polls ?? 0) > 0);
  leaving.abort();
  expect(await lost).toBe('lost');
  await first.stop();
  server.onPoll((job) => Object.assign(job, { state: 'done', output: 'kept' }));
  const second = await startWrapped(aJob(), { environment: environment(), stateDir });
  expect((await call(second, { id: 'a' }, { key: 'k1' })).body.output).toEqual({ result: 'kept' });
  expect(server.jobs.map(({ state }) => state)).toEqual(['done']);
  expect((await call(second, { id: 'a' }, { key: 'k1' })).body.output).toEqual({ result: 'kept' });
  expect(server.jobs.length).toBe(1);
  await call(second, { id: 'other' }, { key: 'k1' });
  await call(second, { id: 'a' }, { key: 'k2' });
  expect(server.jobs.length).toBe(3);
});

it('submits again when the key is reused after the time for which Capstan keeps its answer', async () => {
  const stateDir = join(await aFolder(), 'state');
  const instance = await startWrapped(aJob(), { environment: environment(), stateDir });
  await call(instance, { id: 'a' }, { key: 'k' });
  const [name = ''] = await readdir(join(stateDir, 'remote'));
  const age = async (hours: number): Promise<void> => {
    const used = new Date(Date.now() - hours * 3_600_000);
    await utimes(join(stateDir, 'remote', name), used, used);
  };
  await age(keptAnswerHours - 0.1);
  await call(instance, { id: 'a' }, { key: 'k' });
  expect(server.jobs.length).toBe(1);
  // The attempt before has renewed it.
  await call(instance, { id: 'a' }, { key: 'k' });
  expect((await stat(join(stateDir, 'remote', name))).mtimeMs).toBeGreaterThan(Date.now() - 3_600_000);
  await age(keptAnswerHours + 0.1);
  expect(await call(instance, { id: 'a' }, { key: 'k' })).toMatchObject({ status: 200 });
  expect(server.jobs.length).toBe(2);
});

it('joins a running submission, and cancels after cancel_after when no attempt comes', async () => {
  const instance = await startWrapped(aJob('', '    cancel_after: 0s\n'), { environment: environment() });
  const both = [1, 2].map(() => call(instance, { id: 'a' }, { key: 'k' }));
  expect((await Promise.all(both)).map(({ status }) => status)).toEqual([200, 200]);
  expect(server.jobs.length).toBe(1);
  server.onPoll(() => undefined);
  const leaving = new AbortController();
  const left = call(instance, { id: 'b' }, { key: 'k3', signal: leaving.signal }).catch(() => 'left');
  await waitFor('the job', async () => (server.jobs[1]?.polls ?? 0) > 0);
  leaving.abort();
  await left;
  await waitFor('its cancel', async () => server.jobs[1]?.state === 'cancelled');
});

it('starts no job when it could not keep it', async () => {
  const folder = await aFolder();
  const file = join(folder, 'file');
  await writeFile(file, '');
  const instance = await startWrapped(aJob(), { environment: environment(), stateDir: join(file, 'state') });
  expect(await call(instance, { id: 'a' }, { key: 'k' })).toMatchObject({
    status: 502,
    code: 'state_unwritable',
  });
  expect(server.jobs).toEqual([]);
  expect(await call(instance, { id: 'a' })).toMatchObject({ status: 200 });
});

it('submits again when the provider has forgotten the job, and after a failed one', async () => {
  const instance = await startWrapped(aJob(), { environment: environment() });
  await call(instance, { id: 'a' }, { key: 'k' });
  server.forget();
  expect(await call(instance, { id: 'a' }, { key: 'k' })).toMatchObject({ status: 200 });
  server.onPoll((job) => Object.assign(job, { state: 'failed' }));
  await call(instance, { id: 'c' }, { key: 'k2' });
  await call(instance, { id: 'c' }, { key: 'k2' });
  expect(server.jobs.length).toBe(3);
});

it('refuses an address without a written host, and a literal secret', () => {
  const text = anHttp(
    '  url: "{{ input.id }}"\n  headers: {authorization: "Bearer abc"}\n  poll: {url: nowhere, done: "answer.x =="}\n',
  );
  expect(linesOf(findingsOf(text))).toEqual([
    '9 value_invalid: an address begins with http:// or https:// and a host that is written out, without user and password',
    '10 secret_literal: this header holds a secret, which is not written into the file',
    '11 value_invalid: an address, or one {{ expression }} that yields an address',
  ]);
});

it.each([
  ['Bearer {{ input.authorization }}'],
  ['{{ input.authorization }}'],
  ['{{ input.scheme ?? "Bearer" }} {{ input.key }}'],
  ['sid={{ input.sid }}; theme=dark'],
  [`Bearer \${SERVICE_KEY}{{ input.suffix ?? "" }}`],
])('takes %j, a secret that the call brings, for no literal', (header) => {
  const headers = ['authorization', 'x-auth-token', 'X-Api-Key', 'cookie']
    .map((name) => `${name}: ${JSON.stringify(header)}`)
    .join(', ');
  expect(
    linesOf(findingsOf(anHttp(`  url: "${server.url}/echo"\n  headers: {${headers}}\n`), environment())),
  ).toEqual([]);
});

it.each([
  ['Bearer sk-abc'],
  ['{{ "Bearer sk-abc-123" }}'],
  ['Bearer {{ input.key ?? "sk-abc-123" }}'],
  ['Bearer sk-abc-123{{ input.suffix }}'],
  ['{{ 1 }}'],
  ['{{ "input.key" }}'],
])('refuses %j, which holds a secret', (header) => {
  const part = `  url: "${server.url}/echo"\n  headers: {authorization: ${JSON.stringify(header)}}\n`;
  expect(findingsOf(anHttp(part), environment()).map(({ code }) => code)).toEqual(['secret_literal']);
});

it('sends a secret of the call with its request, the requests about its job, and those for its files', async () => {
  const seen: (string | undefined)[] = [];
  const other = createServer((request, response) => {
    seen.push(`${request.method} ${request.url} ${request.headers.authorization}`);
    const isFile = request.url === '/file';
    response.writeHead(200, { 'content-type': isFile ? 'image/png' : 'application/json' });
    response.end(
      isFile ? 'PIXELS' : JSON.stringify({ done: true, file: `http://${request.headers.host}/file` }),
    );
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void other.close());
  await once(other, 'listening');
  const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  const text = anHttp(
    `  url: ${url}/jobs\n  headers: {authorization: "Bearer {{ input.key }}"}\n  poll: {url: ${url}/jobs/1, done: answer.done}\n`,
    'files: {upload: {out: {to: "{{ input.id }}", from: "{{ answer.file }}"}}}\nresult: {out: "{{ files.out }}"}\n',
  );
  const instance = await startWrapped(text);
  expect(await call(instance, { id: 'media://job/a.png', key: 'of-the-call' })).toMatchObject({
    status: 200,
  });
  expect(seen).toEqual(
    ['POST /jobs', 'GET /jobs/1', 'GET /file'].map((line) => `${line} Bearer of-the-call`),
  );
});
