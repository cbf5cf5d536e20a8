import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { ListMultipartUploadsCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type S3Gateway, startS3Gateway } from '../../../test/support/s3-gateway.ts';
import { findS3Program } from '../../../test/support/s3-program.ts';
import { waitFor } from '../../../test/support/wait.ts';
import { createMediaStore } from '../src/create-media-store.ts';
import type { MediaStore } from '../src/media-store.ts';
import { clip, describeMediaStore, put, readBytes, sha256 } from './store-contract.ts';

const program = await findS3Program();

describe.skipIf(program.path === null)(`S3 media store (${program.reason})`, () => {
  let gateway: S3Gateway;
  let client: S3Client;
  let store: MediaStore;
  let prefix: string;
  beforeAll(async () => {
    gateway = await startS3Gateway(program.path ?? '');
    const { endpoint } = gateway;
    client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true });
  });
  afterAll(() => gateway?.stop());
  beforeEach(async () => {
    prefix = `p-${randomBytes(6).toString('hex')}`;
    store = await createMediaStore(gateway.mediaUrl(prefix));
  });

  const leftovers = async (): Promise<string[]> => {
    const below = { Bucket: gateway.bucket, Prefix: `${prefix}/` };
    const { Contents = [] } = await client.send(new ListObjectsV2Command(below));
    const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand(below));
    return [...Contents, ...Uploads].map(({ Key = '' }) => Key);
  };

  describeMediaStore({ store: () => store, leftovers });

  it('moves a file of several parts, in memory of a few', async () => {
    const bytes = randomBytes(17_000_000); // three parts
    const stored = await store.put(clip, Readable.from([...chunksOf(bytes)]), {
      contentType: 'video/mp4',
      limitBytes: 20_000_000,
    });
    expect(stored).toMatchObject({ size: bytes.length, sha256: sha256(bytes) });
    const opened = await store.open(clip);
    expect(opened?.object).toMatchObject({ size: bytes.length, etag: stored.etag, sha256: null });
    expect(sha256(await readBytes(opened))).toBe(sha256(bytes));
    const middle = await readBytes(await store.open(clip), { start: 16_777_200, end: 16_777_230 });
    expect(middle.equals(bytes.subarray(16_777_200, 16_777_231))).toBe(true);
    const copied = await store.copy(clip, { job_id: 'job_2', file: 'copy' }, stored.sha256);
    expect(copied).toMatchObject({ size: bytes.length, sha256: stored.sha256 });
  });

  it('leaves no parts of an upload that breaks off among them, or is too large', async () => {
    const broken = Readable.from(
      (async function* () {
        for (let n = 0; n < 17; n++) yield Buffer.alloc(1_000_000);
        throw new Error('connection lost');
      })(),
    );
    const given = { contentType: 'video/mp4', limitBytes: 100_000_000 };
    await expect(store.put(clip, broken, given)).rejects.toThrow('connection lost');
    const large = Readable.from([...chunksOf(Buffer.alloc(17_000_000))]);
    const refused = store.put(clip, large, { ...given, limitBytes: 16_900_000 });
    await expect(refused).rejects.toMatchObject({ code: 'body_too_large' });
    expect(await leftovers()).toEqual([]);
  });

  it('holds next to nothing for 16 senders that stop just before their end', async () => {
    const senders = 16;
    const chunkBytes = 65_536;
    const chunks: WeakRef<Buffer>[] = [];
    let silent = 0;
    const ends: (() => void)[] = [];
    const body = (): Readable =>
      Readable.from(
        (async function* () {
          for (let n = 0; n < 31; n++) {
            const chunk = Buffer.alloc(chunkBytes, n);
            chunks.push(new WeakRef(chunk));
            yield chunk;
          }
          silent++;
          await new Promise<void>((resolve) => ends.push(resolve));
        })(),
        { highWaterMark: 1 },
      );
    const given = { contentType: 'video/mp4', limitBytes: 31 * chunkBytes };
    const stored = Array.from({ length: senders }, (_, n) =>
      store.put({ job_id: 'job_1', file: `file-${n}` }, body(), given),
    );
    await waitFor('all senders to fall silent', () => silent === senders);
    await collectGarbage();
    const held = chunks.filter((chunk) => chunk.deref() !== undefined).length * chunkBytes;
    expect(chunks).toHaveLength(31 * senders);
    expect(held).toBeLessThanOrEqual(senders * 4 * chunkBytes);
    for (const end of ends) end();
    expect(new Set((await Promise.all(stored)).map(({ size }) => size))).toEqual(new Set([31 * chunkBytes]));
  });

  it('refuses a name that is a file and a folder at once, where the server does', async () => {
    await put(store, { job_id: 'job_1', file: 'a' }, 'x');
    const below = put(store, { job_id: 'job_1', file: 'a/b' }, 'x');
    await expect(below).rejects.toMatchObject({ code: 'state_conflict' });
  });

  it('reports which keys, bucket or server are wrong', async () => {
    const absent = await createMediaStore(gateway.mediaUrl('').replace('s3://media', 's3://absent'));
    await expect(put(absent, clip, 'x')).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('NoSuchBucket'),
    });
    await expect(absent.probe()).rejects.toMatchObject({ code: 'unavailable' });
    process.env.AWS_SECRET_ACCESS_KEY = 'another';
    try {
      const stranger = await createMediaStore(gateway.mediaUrl(prefix));
      await expect(put(stranger, clip, 'x')).rejects.toMatchObject({
        code: 'unavailable',
        message: expect.stringContaining('SignatureDoesNotMatch'),
      });
      await expect(stranger.head(clip)).rejects.toMatchObject({ code: 'unavailable' });
    } finally {
      Object.assign(process.env, gateway.keys);
    }
  });

  it('outlives a server that is killed under an upload and comes back', async () => {
    await put(store, clip, 'before');
    let sent = 0;
    const body = Readable.from(
      (async function* () {
        for (; sent < 10; sent++) {
          if (sent === 5) await gateway.kill();
          yield Buffer.alloc(1_000_000);
        }
      })(),
    );
    const given = { contentType: 'video/mp4', limitBytes: 100_000_000 };
    await expect(store.put(clip, body, given)).rejects.toMatchObject({ code: 'unavailable' });
    await expect(store.head(clip)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('ECONNREFUSED'),
    });
    await gateway.start();
    expect((await readBytes(await store.open(clip))).toString()).toBe('before');
    await put(store, clip, 'after');
    expect((await readBytes(await store.open(clip))).toString()).toBe('after');
  });

  it('sweeps away parts alone that are older than a day', async () => {
    expect(await store.sweep(0)).toBe(0);
  });
});

/** A reference that was read is kept until the turn of the loop ends. */
async function collectGarbage(): Promise<void> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  await new Promise(setImmediate);
  collect();
}

function* chunksOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += 1_000_000) yield bytes.subarray(at, at + 1_000_000);
}
