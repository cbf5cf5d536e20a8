/** The built console over HTTP: what is cached, compressed and allowed, and that nothing else is served. */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { acceptedEncoding } from '../../src/api/answer.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { sendRaw } from '../support/raw-request.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

function get(path: string, headers: Record<string, string> = {}): Promise<Response> {
  return api.call(path, { headers: { authorization: '', 'accept-encoding': 'identity', ...headers } });
}

const script = 'console.log(1)';

async function build(hash: string): Promise<void> {
  const { consoleFolder: folder } = api;
  await rm(folder, { recursive: true, force: true });
  await mkdir(join(folder, 'assets'), { recursive: true });
  await writeFile(join(folder, 'index.html'), `<!doctype html>${hash}`);
  await writeFile(join(folder, 'icon.svg'), '<svg/>');
  await writeFile(join(folder, 'secret.key'), 'secret');
  await writeFile(join(folder, 'assets/index-AbCd1234.js'), script);
  await writeFile(join(folder, 'assets/index-AbCd1234.js.gz'), gzipSync(script));
  await writeFile(join(folder, 'assets/worker-AbCd1234.js'), script);
  await writeFile(join(folder, '.hash'), hash);
}

async function showing(text: string): Promise<void> {
  await waitFor(`the page to show ${text}`, async () => (await (await get('/ui/')).text()).includes(text));
}

test('before the build, a page explains that and reloads', async () => {
  const answer = await get('/ui/');
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '2']);
  expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(await answer.text()).toMatch(/http-equiv="refresh" content="2".*being built.*href="\/docs"/s);
});

describe('once it is built', () => {
  beforeAll(async () => {
    await build('first');
    await showing('first');
  });

  test.each(['/ui/', '/ui/runs/run_1?view=graph', '/ui/login', '/ui/index.html'])(
    '%s is the page, requested again every time',
    async (path) => {
      const answer = await get(path);
      expect([answer.status, await answer.text()]).toEqual([200, '<!doctype html>first']);
      expect(answer.headers.get('cache-control')).toBe('no-cache');
      expect(answer.headers.get('content-security-policy')).toBe(
        "default-src 'none';script-src 'self';style-src 'self';img-src 'self' data:;connect-src 'self';font-src 'self';worker-src 'self';media-src 'self';base-uri 'none';form-action 'self';frame-ancestors 'none'",
      );
      expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    },
  );

  test('a file with a hash in its name is kept for ever, one without is not', async () => {
    const answer = await get('/ui/assets/index-AbCd1234.js');
    expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(answer.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    expect(await answer.text()).toBe(script);
    expect((await get('/ui/icon.svg')).headers.get('cache-control')).toBe('no-cache');
  });

  test('is sent compressed to a client that accepts it', async () => {
    const path = '/ui/assets/index-AbCd1234.js';
    const zipped = await get(path, { 'accept-encoding': 'gzip' });
    expect([zipped.headers.get('content-encoding'), zipped.headers.get('vary')]).toEqual([
      'gzip',
      'Accept-Encoding',
    ]);
    expect(await zipped.text()).toBe(script);
    const unbuilt = await get(path, { 'accept-encoding': 'br, gzip' });
    expect([unbuilt.headers.get('content-encoding'), await unbuilt.text()]).toEqual([null, script]);
  });

  test('its worker may compile and reach nothing', async () => {
    const { headers } = await get('/ui/assets/worker-AbCd1234.js');
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none';script-src 'self' 'unsafe-eval';connect-src 'none'",
    );
  });

  test('a file of a former build is not there', async () => {
    expect((await get('/ui/assets/index-Former12.js')).status).toBe(404);
  });

  test.each([
    '/ui/secret.key',
    '/ui/.hash',
    '/ui/../package.json',
    '/ui/assets/../secret.key',
    '/ui/assets/%2e%2e/secret.key',
    '/ui/assets/..%2fsecret.key',
    '/ui//etc/passwd',
  ])('%s leads to no file', async (path) => {
    const { status, body } = await sendRaw(api.url, { path, headers: ['Host', 'capstan.test'] });
    expect(status === 404 || body === '<!doctype html>first').toBe(true);
  });

  test('another build takes its place, the former one stays until it is complete', async () => {
    const hidden = join(api.consoleFolder, '..', 'hidden');
    await rename(join(api.consoleFolder, '.hash'), hidden);
    expect((await get('/ui/')).status).toBe(200);
    await build('second');
    await showing('second');
    await rm(hidden);
  });
});

test.each(['/', '/ui'])('%s leads to the console', async (path) => {
  const answer = await get(path);
  expect([answer.status, answer.headers.get('location')]).toEqual([302, '/ui/']);
});

test.each([
  [undefined, null],
  ['gzip, deflate, br', 'br'],
  ['gzip;q=1.0, br;q=0', 'gzip'],
  ['GZIP', 'gzip'],
  ['identity', null],
  ['br;q=0.000, gzip;q=0', null],
])('of %j the form %j is sent', (header, form) => {
  expect(acceptedEncoding(header)).toBe(form);
});
