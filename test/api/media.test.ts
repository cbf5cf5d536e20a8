import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { isLong } from '../support/long.ts';
import { sendRaw } from '../support/raw-request.ts';
import { waitFor } from '../support/wait.ts';

const limit = 100_000;

let api: TestApi;
let job: string;
beforeAll(async () => {
  api = await startTestApi({ MEDIA_LIMIT_BYTES: limit });
  job = ((await (await api.call('/v1/jobs', { body: { job: {} } })).json()) as { job_id: string }).job_id;
});
afterAll(() => api.close());

function put(file: string, body: string | Uint8Array, type = 'video/mp4') {
  return api.call(`/v1/media/${job}/${file}`, { method: 'PUT', body, headers: { 'content-type': type } });
}
function get(file: string, headers: Record<string, string> = {}, method = 'GET') {
  return api.call(`/v1/media/${job}/${file}`, { method, headers });
}
async function bytesOf(answer: Response) {
  return Buffer.from(await answer.arrayBuffer());
}

describe('a file', () => {
  test('comes back byte for byte, with type, size and digest', async () => {
    const content = randomBytes(70_000);
    const sha256 = createHash('sha256').update(content).digest();
    const stored = await put('clips/a.mp4', content);
    expect(stored.status).toBe(201);
    expect(await stored.json()).toEqual({
      reference: `media://${job}/clips/a.mp4`,
      size: 70_000,
      content_type: 'video/mp4',
      sha256: sha256.toString('hex'),
    });
    const answer = await get('clips/a.mp4');
    const { headers } = answer;
    expect((await bytesOf(answer)).equals(content)).toBe(true);
    expect(headers.get('content-type')).toBe('video/mp4');
    expect(headers.get('content-length')).toBe('70000');
    expect(headers.get('etag')).toBe(`"${sha256.toString('hex')}"`);
    expect(headers.get('repr-digest')).toBe(`sha-256=:${sha256.toString('base64')}:`);
    expect(headers.get('content-security-policy')).toContain('sandbox');
    const head = await get('clips/a.mp4', {}, 'HEAD');
    expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, '70000', '']);
  });

  test('of no bytes is a file', async () => {
    expect((await put('empty', '')).status).toBe(201);
    const answer = await get('empty');
    expect([answer.status, await answer.text()]).toEqual([200, '']);
  });

  test('is answered as one state of it, also while it is replaced', async () => {
    const states = ['short', 'a much longer one '.repeat(2_000)];
    await put('changing', states[0] as string);
    let isChanging = true;
    const changing = (async () => {
      for (let n = 1; n <= (isLong ? 25 : 8); n++) await put('changing', states[n % 2] as string);
      isChanging = false;
    })();
    while (isChanging) {
      const answer = await get('changing');
      const content = await bytesOf(answer);
      const digest = createHash('sha256').update(content).digest();
      expect(answer.headers.get('content-length')).toBe(String(content.length));
      expect(answer.headers.get('repr-digest')).toBe(`sha-256=:${digest.toString('base64')}:`);
    }
    await changing;
  });

  test('is replaced as a whole, listed with its job, and deleted once', async () => {
    await put('b.txt', 'first', 'text/plain');
    expect((await put('b.txt', 'second', 'text/markdown')).status).toBe(200);
    expect(await (await get('b.txt')).text()).toBe('second');
    const { artifacts } = (await (await api.call(`/v1/jobs/${job}`)).json()) as { artifacts: unknown[] };
    const reference = `media://${job}/b.txt`;
    expect(artifacts).toContainEqual(
      expect.objectContaining({ reference, content_type: 'text/markdown', size: 6 }),
    );
    expect((await get('b.txt', {}, 'DELETE')).status).toBe(204);
    expect((await get('b.txt', {}, 'DELETE')).status).toBe(404);
    expect((await get('b.txt')).status).toBe(404);
  });

  test('is not sent to a client that has it', async () => {
    await put('c.txt', 'same');
    const etag = (await get('c.txt')).headers.get('etag') ?? '';
    const answer = await get('c.txt', { 'if-none-match': `"other", ${etag}` });
    expect([answer.status, await answer.text()]).toEqual([304, '']);
  });

  test('over the limit is refused, announced or not, and leaves nothing behind', async () => {
    expect((await put('exact', randomBytes(limit))).status).toBe(201);
    const announced = await put('big', randomBytes(limit + 1));
    expect([announced.status, ((await announced.json()) as { code: string }).code]).toEqual([
      413,
      'body_too_large',
    ]);
    const headers = ['Host', 'x', 'Authorization', `Bearer ${api.apiKey}`];
    const path = `/v1/media/${job}/big`;
    const streamed = await sendRaw(api.url, { path, method: 'PUT', headers }, (request) => {
      for (let sent = 0; sent < limit * 2; sent += 10_000) request.write(Buffer.alloc(10_000));
    });
    expect(streamed.status).toBe(413);
    expect((await get('big')).status).toBe(404);
  });

  test('that breaks off half-way is not there', async () => {
    const headers = ['Host', 'x', 'Authorization', `Bearer ${api.apiKey}`];
    const cut = sendRaw(api.url, { path: `/v1/media/${job}/half`, method: 'PUT', headers }, (request) => {
      request.write(Buffer.alloc(5_000), () => request.destroy(new Error('cut')));
    });
    await expect(cut).rejects.toThrow('cut');
    await waitFor('its log line', () => api.log.some((line) => line.includes('"aborted":true')));
    expect((await get('half')).status).toBe(404);
  });
});

describe('a range', () => {
  const content = '0123456789';
  beforeAll(async () => {
    await put('digits', content);
  });

  test.each([
    ['bytes=0-3', '0123', 'bytes 0-3/10'],
    ['bytes=7-', '789', 'bytes 7-9/10'],
    ['bytes=-4', '6789', 'bytes 6-9/10'],
    ['bytes=8-100', '89', 'bytes 8-9/10'],
    ['bytes=-100', content, 'bytes 0-9/10'],
  ])('%s is %s', async (range, expected, contentRange) => {
    const answer = await get('digits', { range });
    expect([answer.status, await answer.text()]).toEqual([206, expected]);
    expect(answer.headers.get('content-range')).toBe(contentRange);
    expect(answer.headers.get('content-length')).toBe(String(expected.length));
  });

  test.each(['bytes=10-', 'bytes=99-100', 'bytes=-0'])('%s lies outside', async (range) => {
    const answer = await get('digits', { range });
    expect([answer.status, answer.headers.get('content-range')]).toEqual([416, 'bytes */10']);
    expect(await answer.json()).toMatchObject({ code: 'range_not_satisfiable' });
  });

  test.each(['bytes=3-1', 'bytes=0-1,4-5', 'lines=1-2', 'bytes=a-b', 'bytes=-'])(
    '%s is no single range, so all is sent',
    async (range) => {
      const answer = await get('digits', { range });
      expect([answer.status, await answer.text()]).toEqual([200, content]);
    },
  );

  test('of a file that has changed since is all of it', async () => {
    const answer = await get('digits', { range: 'bytes=0-3', 'if-range': '"another"' });
    expect([answer.status, await answer.text()]).toEqual([200, content]);
  });
});

describe('a path that leads elsewhere', () => {
  test.each([
    '../../etc/passwd',
    'a/../../b',
    '%2e%2e/%2e%2e/etc/passwd',
    '..%2f..%2fetc%2fpasswd',
    '.',
    './a',
    'a//b',
    'a%00',
    'a\\b',
    'a~meta.json',
    'a%7Emeta.json',
    'a/b/c/d/e/f/g/h',
    `${'x'.repeat(129)}`,
    '%C3%A4',
    'a/',
  ])('is refused: %s', async (file) => {
    const headers = ['Host', 'x', 'Authorization', `Bearer ${api.apiKey}`];
    const path = `/v1/media/${job}/${file}`;
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const { status } = await sendRaw(api.url, {
        path,
        method,
        headers: [...headers, 'Content-Length', '0'],
      });
      expect([404, 422]).toContain(status);
    }
  });

  test.each(['..', '.', '~incoming', '%2e%2e'])('is refused as a job: %s', async (name) => {
    const headers = ['Host', 'x', 'Authorization', `Bearer ${api.apiKey}`];
    const { status } = await sendRaw(api.url, { path: `/v1/media/${name}/a`, headers });
    expect([404, 422]).toContain(status);
  });
});
