/** What every media store promises. */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { AppError } from '@capstan/core/errors/app-error';
import { describe, expect, it } from 'vitest';
import type { MediaStore, OpenObject, PutOptions } from '../src/media-store.ts';

export interface StoreUnderTest {
  /** A fresh one for each test. */
  readonly store: () => MediaStore;
  /** Everything that lies in it, unfinished uploads included. */
  readonly leftovers: () => Promise<readonly string[]>;
}

export const clip = { job_id: 'job_1', file: 'clip.mp4' };

export function sha256(bytes: string | Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

export function put(
  store: MediaStore,
  path: typeof clip,
  bytes: string | Buffer,
  options: Partial<PutOptions> = {},
) {
  const body = Readable.from([Buffer.from(bytes)]);
  return store.put(path, body, { contentType: 'video/mp4', limitBytes: 100_000_000, ...options });
}

export async function readBytes(opened: OpenObject | null, span?: { start: number; end: number }) {
  if (opened === null) throw new Error('there is no such object');
  return Buffer.concat(await (await opened.read(span)).toArray());
}

async function readAll(store: MediaStore, path: typeof clip, span?: { start: number; end: number }) {
  return (await readBytes(await store.open(path), span)).toString();
}

function breakingOff(bytes: number): Readable {
  return Readable.from(
    (async function* () {
      yield Buffer.alloc(bytes);
      throw new Error('connection lost');
    })(),
  );
}

const options = { contentType: 'video/mp4', limitBytes: 1_000 };

export function describeMediaStore({ store, leftovers }: StoreUnderTest): void {
  describe('writes', () => {
    it('keeps bytes, size, type and digest', async () => {
      const before = Date.now() - 2_000; // a store may keep whole seconds
      const stored = await put(store(), clip, 'hello world');
      expect(stored).toMatchObject({ size: 11, content_type: 'video/mp4', sha256: sha256('hello world') });
      const { modified_at, sha256: known, ...same } = (await store().head(clip)) ?? expect.fail('missing');
      expect(stored).toMatchObject(same);
      expect([sha256('hello world'), null]).toContain(known);
      expect(modified_at.getTime()).toBeGreaterThan(before);
      expect(modified_at.getTime()).toBeLessThanOrEqual(Date.now());
      expect(await readAll(store(), clip)).toBe('hello world');
    });

    it('takes a file of no bytes', async () => {
      expect(await put(store(), clip, '')).toMatchObject({ size: 0, sha256: sha256('') });
      expect(await readAll(store(), clip)).toBe('');
    });

    it('names each state of a file by another etag', async () => {
      const first = await put(store(), clip, 'one');
      const second = await put(store(), clip, 'another');
      expect(first.etag).not.toBe(second.etag);
      expect((await store().head(clip))?.etag).toBe(second.etag);
    });

    it('leaves nothing of an upload that breaks off, and keeps what was there', async () => {
      await expect(store().put(clip, breakingOff(10), options)).rejects.toThrow('connection lost');
      expect(await leftovers()).toEqual([]);
      await put(store(), clip, 'whole');
      await expect(store().put(clip, breakingOff(10), options)).rejects.toThrow('connection lost');
      expect(await readAll(store(), clip)).toBe('whole');
    });

    it('refuses what is larger than the limit and leaves the source open for an answer', async () => {
      const body = Readable.from([Buffer.alloc(600), Buffer.alloc(600), Buffer.alloc(600)]);
      await expect(store().put(clip, body, options)).rejects.toMatchObject({ code: 'body_too_large' });
      expect(body.destroyed).toBe(false);
      expect(await leftovers()).toEqual([]);
    });

    it('stores nothing that is not what was announced', async () => {
      const wrong = put(store(), clip, 'hello', { expected: sha256('other') });
      await expect(wrong).rejects.toMatchObject({ code: 'digest_mismatch' });
      expect(await leftovers()).toEqual([]);
      expect(await put(store(), clip, 'hello', { expected: sha256('hello') })).toMatchObject({ size: 5 });
    });

    it('lets one of 20 in that write at once where there is nothing yet', async () => {
      const ends = await Promise.allSettled(
        Array.from({ length: 20 }, (_, n) => put(store(), clip, `writer ${n}`, { ifAbsent: true })),
      );
      const won = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []));
      const codes = ends.flatMap((end) => (end.status === 'rejected' ? [(end.reason as AppError).code] : []));
      expect([won.length, codes]).toEqual([1, Array(19).fill('already_there')]);
      expect(sha256(await readAll(store(), clip))).toBe(won[0]?.sha256);
      expect((await store().head(clip))?.content_type).toBe('video/mp4');
    });

    it('never leaves its place', async () => {
      for (const path of [
        { job_id: '..', file: 'x' },
        { job_id: 'job_1', file: '../../x' },
        { job_id: 'job_1', file: 'a//b' },
        { job_id: '~incoming', file: 'x' },
        { job_id: 'job_1', file: 'x\0' },
        { job_id: 'job_1', file: '' },
      ]) {
        await expect(put(store(), path, 'x')).rejects.toMatchObject({ code: 'request_invalid' });
        await expect(store().head(path)).rejects.toMatchObject({ code: 'request_invalid' });
      }
      await expect(store().deleteJob('..')).rejects.toMatchObject({ code: 'request_invalid' });
      expect(await leftovers()).toEqual([]);
    });
  });

  describe('reads', () => {
    it('reads ranges with both ends included', async () => {
      await put(store(), clip, 'hello world');
      expect(await readAll(store(), clip, { start: 4, end: 6 })).toBe('o w');
    });

    it('answers null and false for what does not exist', async () => {
      await put(store(), { job_id: 'job_1', file: 'folder/a' }, 'a');
      for (const file of ['missing', 'folder', 'folder/a/below']) {
        const path = { job_id: 'job_1', file };
        expect(await store().head(path)).toBeNull();
        expect(await store().delete(path)).toBe(false);
        expect(await store().open(path)).toBeNull();
        expect(await store().exists(path)).toBe(false);
      }
    });

    it('shows an old or a new object while it is replaced, never a mixture', async () => {
      const versions = ['one', 'another'].map((text) => text.repeat(20_000));
      const allowed = new Set(versions.map((text) => `${text.length} ${sha256(text)}`));
      await put(store(), clip, versions[0] ?? '');
      let replacing = true;
      const writer = (async () => {
        for (let i = 1; i <= 16; i += 1) await put(store(), clip, versions[i % 2] ?? '');
        replacing = false;
      })();
      let whole = 0;
      while (replacing) {
        const opened = await store().open(clip);
        expect(opened?.object.content_type).toBe('video/mp4');
        const content = await readBytes(opened).catch((error: unknown) => {
          if (error instanceof AppError && error.code === 'unavailable') return null; // asked again
          throw error;
        });
        if (content === null) continue;
        expect(allowed).toContain(`${opened?.object.size} ${sha256(content)}`);
        whole++;
      }
      await writer;
      expect(whole).toBeGreaterThan(0);
    });

    it('lists the objects of one job alone', async () => {
      await put(store(), clip, 'a');
      const other = await put(store(), { job_id: 'job_1', file: 'parts/b.wav' }, 'bb');
      await put(store(), { job_id: 'job_10', file: 'foreign' }, 'c');
      const { files: listed } = await store().list('job_1', 2);
      expect(listed.map(({ file }) => file)).toEqual(['clip.mp4', 'parts/b.wav']);
      expect(listed[1]?.etag).toBe(other.etag);
      const { files, hasMore } = await store().list('job_1', 1);
      expect([files.length, hasMore]).toEqual([1, true]);
      expect(await store().list('job_none', 10)).toEqual({ files: [], hasMore: false });
    });
  });

  describe('copies', () => {
    const copy = { job_id: 'job_2', file: 'deep/copy.mp4' };

    it('a file whose digest is the expected one, and the copy is a file of its own', async () => {
      const { sha256: digest } = await put(store(), clip, 'hello');
      expect(await store().copy(clip, copy, digest)).toMatchObject({
        sha256: digest,
        content_type: 'video/mp4',
      });
      await put(store(), clip, 'another');
      expect(await readAll(store(), copy)).toBe('hello');
    });

    it('nothing that is missing, or another file by now, and leaves what was there', async () => {
      await put(store(), copy, 'before');
      expect(await store().copy(clip, copy, sha256('hello'))).toBeNull();
      await put(store(), clip, 'edited');
      expect(await store().copy(clip, copy, sha256('hello'))).toBeNull();
      expect(await readAll(store(), copy)).toBe('before');
    });
  });

  describe('deletes', () => {
    it('an object, with all that is known of it', async () => {
      await put(store(), clip, 'a');
      expect(await store().delete(clip)).toBe(true);
      expect(await store().delete(clip)).toBe(false);
      expect(await leftovers()).toEqual([]);
    });

    it('an object in one state alone, where one is named', async () => {
      const old = await put(store(), clip, 'old');
      const newer = await put(store(), clip, 'newer');
      expect(await store().delete(clip, old.etag)).toBe(false);
      expect(await readAll(store(), clip)).toBe('newer');
      expect(await store().delete(clip, newer.etag)).toBe(true);
      expect(await store().delete(clip, newer.etag)).toBe(false);
    });

    it('all objects of one job, and may be repeated', async () => {
      await put(store(), clip, 'a');
      await put(store(), { job_id: 'job_1', file: 'deep/b' }, 'b');
      await put(store(), { job_id: 'job_10', file: 'stays' }, 'c');
      expect(await store().deleteJob('job_1')).toBe(2);
      expect(await store().deleteJob('job_1')).toBe(0);
      expect(await store().list('job_1', 10)).toEqual({ files: [], hasMore: false });
      expect((await store().list('job_10', 10)).files.map(({ file }) => file)).toEqual(['stays']);
    });
  });

  it('says that it works', async () => {
    await store().probe();
    expect(await leftovers()).toEqual([]);
  });
}
