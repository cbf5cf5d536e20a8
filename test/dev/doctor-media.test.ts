import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { checkMedia } from '../../src/dev/doctor/run-checks.ts';
import { startS3Gateway } from '../support/s3-gateway.ts';
import { findS3Program } from '../support/s3-program.ts';

async function check(MEDIA_URL: string | undefined) {
  const dataDir = await mkdtemp(join(tmpdir(), 'capstan-doctor-'));
  onTestFinished(() => rm(dataDir, { recursive: true }));
  return checkMedia({ dataDir, environment: { MEDIA_URL }, cacheDir: dataDir, fixes: false });
}

it('tries a folder, and leaves nothing in it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'capstan-doctor-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const found = await check(`file://${folder}`);
  expect(found).toMatchObject({
    status: 'ok',
    found: `file://${folder}: a file was written, read and deleted`,
  });
  expect(await readdir(join(folder, '~incoming'))).toEqual([]);
  await writeFile(join(folder, 'a-file'), '');
  expect(await check(`file://${join(folder, 'a-file')}`)).toMatchObject({ status: 'missing' });
});

it('describes the default where nothing is set, and the fault of a wrong setting', async () => {
  expect(await check(undefined)).toMatchObject({ status: 'ok' });
  expect(await check('s3://My_Bucket')).toMatchObject({
    status: 'missing',
    found: expect.stringContaining('small letters'),
    remedy: expect.stringContaining('MEDIA_URL'),
  });
});

const program = await findS3Program();

it.skipIf(program.path === null)(`tries a bucket, which must be there (${program.reason})`, async () => {
  const gateway = await startS3Gateway(program.path ?? '');
  onTestFinished(() => gateway.stop());
  const { status, found } = await check(gateway.mediaUrl('doctor'));
  expect([status, found]).toEqual([
    'ok',
    expect.stringContaining(`s3://media/doctor at ${gateway.endpoint}`),
  ]);
  const absent = await check(gateway.mediaUrl('doctor').replace('s3://media', 's3://absent'));
  expect(absent).toMatchObject({ status: 'missing', found: expect.stringContaining('refuses') });
});

interface Upload {
  readonly isDirect: boolean;
  readonly hasAnnouncedBytes: boolean;
}

/** A server that speaks as much of S3 as the check needs, and answers uploads as the test decides. */
async function startBucket(
  statusOf: (upload: Upload) => number,
): Promise<{ url: string; left: () => number }> {
  const objects = new Map<string, Buffer>();
  const readUpload = async (request: IncomingMessage): Promise<Upload & { bytes: Buffer }> => {
    const bytes = await buffer(request);
    const told = request.headers['x-amz-checksum-sha256'];
    const isDirect = request.url?.includes('X-Amz-Signature=') === true;
    const digest = createHash('sha256').update(bytes).digest('base64');
    return { isDirect, bytes, hasAnnouncedBytes: told === undefined || told === digest };
  };
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://bucket');
    const answer = (status: number, body = '', headers = {}): void =>
      void response.writeHead(status, headers).end(body);
    if (request.method === 'PUT') {
      const upload = await readUpload(request);
      const status = statusOf(upload);
      if (status < 300) objects.set(pathname, upload.bytes);
      return answer(status, '', { etag: '"e"' });
    }
    if (request.method === 'DELETE') {
      objects.delete(pathname);
      return answer(204);
    }
    const isThere = pathname === '/media' || pathname === '/media/' || objects.has(pathname);
    if (searchParams.get('list-type') !== '2') return answer(isThere ? 200 : 404, '', { etag: '"e"' });
    const keys = [...objects.keys()].map((key) => key.replace('/media/', ''));
    const contents = keys.map((key) => `<Contents><Key>${key}</Key><ETag>"e"</ETag></Contents>`);
    const list = `<ListBucketResult><IsTruncated>false</IsTruncated>${contents.join('')}</ListBucketResult>`;
    answer(200, list, { 'content-type': 'application/xml' });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url: `s3://media/doctor?endpoint=${endpoint}&path_style=true`, left: () => objects.size };
}

it.each<[string, (upload: Upload) => number, string, string]>([
  ['checks the digest', ({ hasAnnouncedBytes }) => (hasAnnouncedBytes ? 200 : 400), 'ok', 'was refused'],
  ['takes other bytes than announced', () => 200, 'warning', 'than announced was accepted'],
  ['takes no direct upload', ({ isDirect }) => (isDirect ? 403 : 200), 'warning', 'is answered with 403'],
])('tries a wrong body on a bucket, which %s', async (_, statusOf, status, said) => {
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b', AWS_REGION: 'us-east-1' });
  const bucket = await startBucket(statusOf);
  const found = await check(bucket.url);
  expect([found.status, found.found]).toEqual([status, expect.stringContaining(said)]);
  expect(found.remedy === null).toBe(status === 'ok');
  expect(bucket.left()).toBe(0);
});
