/** What a capability moves, by each form of MEDIA_URL. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MediaTransfer } from '@capstan/capability/media/media-transfer';
import { createMediaTransfer } from '@capstan/capability/media/media-transfer';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { isLong } from '../support/long.ts';
import { type S3Gateway, startS3Gateway } from '../support/s3-gateway.ts';
import { findS3Program } from '../support/s3-program.ts';

const program = await findS3Program();
const { signal } = new AbortController();

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'capstan-transfers-'));
});
afterAll(() => rm(folder, { recursive: true }));

interface Form {
  readonly api: TestApi;
  readonly mediaUrl: string;
}

const fewBytes = [0, ...(isLong ? [1_000] : []), 2_000_000];
/** More than a part of any way into a bucket. */
const manyBytes = 17_000_000;

function describeTransfers(form: () => Form, sizes: readonly number[]): void {
  let transfer: MediaTransfer;
  let job: string;
  beforeAll(async () => {
    const { api, mediaUrl } = form();
    transfer = await createMediaTransfer(mediaUrl, api.apiKey);
    const created = await api.call('/v1/jobs', { body: { job: {} } });
    job = ((await created.json()) as { job_id: string }).job_id;
  });

  test.each(sizes)('%s bytes come back, and the API reports their size', async (size) => {
    const bytes = randomBytes(size);
    const [from, back] = [join(folder, `${job}-${size}`), join(folder, `${job}-${size}-back`)];
    await writeFile(from, bytes);
    const path = { job_id: job, file: `deep/${size}.mp4` };
    await transfer.upload({ path: from, contentType: 'video/mp4' }, path, signal);
    await transfer.download(path, back, signal);
    expect((await readFile(back)).equals(bytes)).toBe(true);
    const { headers } = await form().api.call(`/v1/media/${job}/${path.file}`, { method: 'HEAD' });
    expect([headers.get('content-length'), headers.get('content-type')]).toEqual([String(size), 'video/mp4']);
  });

  test('a missing file is reported as missing', async () => {
    const missing = transfer.download({ job_id: job, file: 'none' }, join(folder, 'none'), signal);
    await expect(missing).rejects.toThrow(
      /none (does not exist|: the media store answered 404)|: the media store answered 404/,
    );
  });
}

describe('through an API over a folder', () => {
  let api: TestApi;
  beforeAll(async () => {
    api = await startTestApi();
  });
  afterAll(() => api?.close());
  describeTransfers(() => ({ api, mediaUrl: api.url }), isLong ? [...fewBytes, manyBytes] : fewBytes);
});

describe.skipIf(program.path === null)(`with a bucket (${program.reason})`, () => {
  let gateway: S3Gateway;
  let api: TestApi;
  let open: TestApi;
  beforeAll(async () => {
    gateway = await startS3Gateway(program.path ?? '');
    const MEDIA_URL = gateway.mediaUrl('transfers');
    api = await startTestApi({ MEDIA_URL });
    open = await startTestApi({ MEDIA_URL, MEDIA_REDIRECT: 'true' });
  });
  afterAll(async () => {
    await api?.close();
    await open?.close();
    await gateway?.stop();
  });
  const sizes = isLong ? [...fewBytes, manyBytes] : [0, manyBytes];
  describe('through the API', () => describeTransfers(() => ({ api, mediaUrl: api.url }), sizes));
  describe('past the API', () => describeTransfers(() => ({ api: open, mediaUrl: open.url }), sizes));
  describe('directly', () =>
    describeTransfers(() => ({ api, mediaUrl: gateway.mediaUrl('transfers') }), sizes));
});
