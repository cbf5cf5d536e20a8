import { createHash, randomBytes } from 'node:crypto';
import type { UploadTicket } from '@capstan/core/contracts/media';
import type { Problem } from '@capstan/core/contracts/problem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { isLong } from '../support/long.ts';
import { type S3Gateway, startS3Gateway } from '../support/s3-gateway.ts';
import { findS3Program } from '../support/s3-program.ts';

function sha256(bytes: string | Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

async function newJob(api: TestApi): Promise<string> {
  return ((await (await api.call('/v1/jobs', { body: { job: {} } })).json()) as { job_id: string }).job_id;
}

function describeFile(bytes: Buffer) {
  return { size: bytes.length, sha256: sha256(bytes), content_type: 'video/mp4' };
}

async function announce(api: TestApi, place: string, body: object): Promise<UploadTicket> {
  const answer = await api.call(`/v1/media/${place}/upload`, { body });
  if (answer.status !== 201) throw new Error(`${answer.status} ${await answer.text()}`);
  return (await answer.json()) as UploadTicket;
}

type Whole = Extract<UploadTicket, { url: string }>;
type Parted = Extract<UploadTicket, { parts: unknown }>;

/** As anybody would who has the ticket alone. */
function send(api: TestApi, { url, headers }: Pick<Whole, 'url' | 'headers'>, body: Buffer) {
  return fetch(new URL(url, api.url), { method: 'PUT', headers, body: new Uint8Array(body) });
}

async function codeOf(answer: Response): Promise<string> {
  return ((await answer.json()) as Problem).code;
}

describe('an announced file, in a folder', () => {
  let api: TestApi;
  let job: string;
  beforeAll(async () => {
    api = await startTestApi({ MEDIA_LIMIT_BYTES: 100_000, MEDIA_BYTES_PER_PROJECT: 150_000 });
    job = await newJob(api);
  });
  afterAll(() => api.close());
  const bytes = randomBytes(50_000);

  test('is sent to the API without a key, and answered as the file', async () => {
    const ticket = (await announce(api, `${job}/deep/a.mp4`, describeFile(bytes))) as Whole;
    expect(ticket.url).toMatch(/^\/v1\/uploads\//);
    expect(new Date(ticket.expires_at).getTime()).toBeGreaterThan(Date.now());
    const answer = await send(api, ticket, bytes);
    expect(answer.status).toBe(201);
    const file = { reference: `media://${job}/deep/a.mp4`, ...describeFile(bytes) };
    expect(await answer.json()).toEqual(file);
    expect(sha256(Buffer.from(await (await api.call(`/v1/media/${job}/deep/a.mp4`)).arrayBuffer()))).toBe(
      file.sha256,
    );
    expect(api.log.join()).not.toContain(ticket.url.split('/').at(-1));
  });

  test('must be what was announced', async () => {
    const ticket = (await announce(api, `${job}/b.mp4`, describeFile(bytes))) as Whole;
    const other = await send(api, ticket, randomBytes(50_000));
    expect([other.status, await codeOf(other)]).toEqual([422, 'digest_mismatch']);
    const headers = { ...ticket.headers, 'content-length': '50001' };
    const longer = await send(api, { ...ticket, headers }, randomBytes(50_001));
    expect([longer.status, await codeOf(longer)]).toEqual([413, 'body_too_large']);
    expect((await api.call(`/v1/media/${job}/b.mp4`)).status).toBe(404);
    expect((await send(api, ticket, bytes)).status).toBe(201);
  });

  test('is refused before it is sent: too large, too much, of no job, by no key', async () => {
    const large = await api.call(`/v1/media/${job}/c/upload`, {
      body: { size: 100_001, sha256: sha256('') },
    });
    expect([large.status, await codeOf(large)]).toEqual([413, 'body_too_large']);
    const much = await api.call(`/v1/media/${job}/c/upload`, { body: { size: 60_000, sha256: sha256('') } });
    expect([much.status, await codeOf(much)]).toEqual([413, 'media_quota']);
    const put = await api.call(`/v1/media/${job}/c`, { method: 'PUT', body: Buffer.alloc(60_000) });
    const problem = (await put.json()) as Problem;
    expect([put.status, problem.code]).toEqual([413, 'media_quota']);
    expect(problem.detail).toContain('150000');
    const body = { size: 1, sha256: sha256('') };
    expect((await api.call('/v1/media/job_none/c/upload', { body })).status).toBe(404);
    const stranger = await api.createProject('another');
    const headers = { authorization: `Bearer ${stranger.apiKey}` };
    expect((await api.call(`/v1/media/${job}/c/upload`, { body, headers })).status).toBe(404);
    expect(
      (await api.call(`/v1/media/${job}/c/upload`, { body, headers: { authorization: '' } })).status,
    ).toBe(401);
    const unknown = { url: `/v1/uploads/${'x'.repeat(43)}`, headers: {} };
    expect((await send(api, unknown, bytes)).status).toBe(404);
  });

  test('that has not come is not deleted in place of the one before', async () => {
    await api.call(`/v1/media/${job}/kept.mp4`, { method: 'PUT', body: 'good' });
    const ticket = (await announce(api, `${job}/kept.mp4`, describeFile(randomBytes(10)))) as Whole;
    const early = await fetch(new URL(ticket.url, api.url), { method: 'POST' });
    expect([early.status, await codeOf(early)]).toEqual([409, 'upload_incomplete']);
    expect(await (await api.call(`/v1/media/${job}/kept.mp4`)).text()).toBe('good');
  });

  test('is not led elsewhere when it is read', async () => {
    expect((await api.call(`/v1/media/${job}/deep/a.mp4`)).status).toBe(200);
  });

  test('replaces nothing under If-None-Match: *', async () => {
    const condition = { method: 'PUT', headers: { 'if-none-match': '*' } };
    expect((await api.call(`/v1/media/${job}/once`, { ...condition, body: 'one' })).status).toBe(201);
    const again = await api.call(`/v1/media/${job}/once`, { ...condition, body: 'two' });
    expect([again.status, await codeOf(again)]).toEqual([412, 'already_there']);
    expect(await (await api.call(`/v1/media/${job}/once`)).text()).toBe('one');
    const odd = { method: 'PUT', headers: { 'if-none-match': '"x"' }, body: 'two' };
    expect((await api.call(`/v1/media/${job}/once`, odd)).status).toBe(422);
  });
});

const program = await findS3Program();

describe.skipIf(program.path === null)(`files in a bucket that clients reach (${program.reason})`, () => {
  let gateway: S3Gateway;
  let api: TestApi;
  let job: string;
  beforeAll(async () => {
    gateway = await startS3Gateway(program.path ?? '');
    api = await startTestApi({ MEDIA_URL: gateway.mediaUrl('uploads'), MEDIA_REDIRECT: 'true' });
    job = await newJob(api);
  });
  afterAll(async () => {
    await api?.close();
    await gateway?.stop();
  });

  const read = (file: string, headers: Record<string, string> = {}) =>
    api.call(`/v1/media/${job}/${file}`, { headers });
  const bytes = randomBytes(100_000);

  test('a small one goes to the bucket in one piece, which takes nothing else', async () => {
    const ticket = (await announce(api, `${job}/a.mp4`, describeFile(bytes))) as Whole;
    expect(ticket.url.startsWith(`${gateway.endpoint}/`)).toBe(true);
    // Else it would be the checksum of an empty body, which Amazon compares and this server does not.
    expect(ticket.url.toLowerCase()).not.toMatch(/crc|checksum-sha256=|sdk-checksum/);
    expect(new URL(ticket.url).searchParams.get('X-Amz-SignedHeaders')).toBe(
      'content-length;content-type;host;x-amz-checksum-sha256',
    );
    expect((await send(api, ticket, randomBytes(100_000))).status).toBe(400);
    const longer = { ...ticket, headers: { ...ticket.headers, 'content-length': '100001' } };
    expect((await send(api, longer, randomBytes(100_001))).status).toBe(403);
    const typed = { ...ticket, headers: { ...ticket.headers, 'content-type': 'text/html' } };
    expect((await send(api, typed, bytes)).status).toBe(403);
    expect((await read('a.mp4')).status).toBe(404);
    expect((await send(api, ticket, bytes)).status).toBe(200);
    const { headers } = await api.call(`/v1/media/${job}/a.mp4`, { method: 'HEAD' });
    expect([headers.get('etag'), headers.get('content-type')]).toEqual([`"${sha256(bytes)}"`, 'video/mp4']);
  });

  test('reading leads there, with ranges; the page of the console stays here', async () => {
    await api.call(`/v1/media/${job}/b.txt`, {
      method: 'PUT',
      body: '0123456789',
      headers: { 'content-type': 'text/plain' },
    });
    const answer = await read('b.txt');
    const location = answer.headers.get('location') ?? '';
    expect([answer.status, location.startsWith(`${gateway.endpoint}/`)]).toEqual([307, true]);
    expect(answer.headers.get('repr-digest')).toContain('sha-256=:');
    expect(await (await fetch(location)).text()).toBe('0123456789');
    const part = await fetch(location, { headers: { range: 'bytes=2-4' } });
    expect([part.status, await part.text()]).toEqual([206, '234']);
    const saved = await api.call(`/v1/media/${job}/b.txt?download=true`);
    const file = await fetch(saved.headers.get('location') ?? '');
    expect(file.headers.get('content-disposition')).toBe('attachment; filename="b.txt"');
    const ofPage = await read('b.txt', { 'sec-fetch-site': 'same-origin', range: 'bytes=2-4' });
    expect([ofPage.status, await ofPage.text()]).toEqual([206, '234']);
    const known = await read('b.txt', { 'if-none-match': answer.headers.get('etag') ?? '' });
    expect(known.status).toBe(304);
    expect((await read('b.txt', { range: 'bytes=10-' })).status).toBe(416);
  });

  const large = randomBytes(17_000_000);
  const announcedLarge = describeFile(large);

  test('a large one is uploaded in parts of 16 MiB, and is one file when all are complete; its replacement stays', async () => {
    const ticket = (await announce(api, `${job}/large.mp4`, announcedLarge)) as Parted;
    expect(ticket.parts.map(({ headers }) => headers['content-length'])).toEqual(['16777216', '222784']);
    const sendPart = (n: number) => {
      const part = ticket.parts[n] ?? expect.fail();
      return send(api, part, large.subarray(n * 16_777_216, (n + 1) * 16_777_216));
    };
    const complete = () => fetch(new URL(ticket.complete_url, api.url), { method: 'POST' });
    expect((await sendPart(1)).status).toBe(200);
    const early = await complete();
    expect([early.status, await codeOf(early)]).toEqual([409, 'upload_incomplete']);
    expect((await read('large.mp4')).status).toBe(404);
    expect((await sendPart(0)).status).toBe(200);
    for (const _repeated of [1, 2]) {
      const done = await complete();
      expect([done.status, await done.json()]).toEqual([
        200,
        { reference: `media://${job}/large.mp4`, ...announcedLarge },
      ]);
    }
    const newer = randomBytes(10_000);
    await api.call(`/v1/media/${job}/large.mp4`, { method: 'PUT', body: new Uint8Array(newer) });
    const again = await complete();
    expect([again.status, await codeOf(again)]).toEqual([404, 'not_found']);
    const { headers } = await api.call(`/v1/media/${job}/large.mp4`, { method: 'HEAD' });
    expect(headers.get('etag')).toBe(`"${sha256(newer)}"`);
  });

  // In short: direct-media.test.ts, with a file that is sent whole above.
  test.runIf(isLong)('parts that make another file than was announced are deleted', async () => {
    const ticket = (await announce(api, `${job}/wrong.mp4`, {
      ...announcedLarge,
      sha256: sha256(''),
    })) as Parted;
    for (const [n, part] of ticket.parts.entries()) {
      await send(api, part, large.subarray(n * 16_777_216, (n + 1) * 16_777_216));
    }
    const done = await fetch(new URL(ticket.complete_url, api.url), { method: 'POST' });
    expect([done.status, await codeOf(done)]).toEqual([422, 'digest_mismatch']);
    expect((await read('wrong.mp4')).status).toBe(404);
  });

  test('a bucket that is down is reported as unavailable, and works again afterwards', async () => {
    await gateway.kill();
    const away = await read('b.txt');
    expect([away.status, await codeOf(away)]).toEqual([503, 'unavailable']);
    const put = await api.call(`/v1/media/${job}/d`, { method: 'PUT', body: 'x' });
    expect([put.status, await codeOf(put)]).toEqual([503, 'unavailable']);
    await gateway.start();
    expect((await read('b.txt')).status).toBe(307);
  });
});
