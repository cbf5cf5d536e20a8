import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createMediaStore } from '../../../src/clients/media/create-media-store.ts';
import type { MediaStore } from '../../../src/clients/media/media-store.ts';

let directory: string;
let store: MediaStore;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'capstan media 100%20-'));
  store = createMediaStore(pathToFileURL(directory).href);
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const clip = { job_id: 'job_1', file: 'clip.mp4' };
function sha256(bytes: string | Buffer) {
  return createHash('sha256').update(bytes).digest('hex');
}
function put(path: typeof clip, bytes: string, contentType = 'video/mp4') {
  return store.put(path, Readable.from([Buffer.from(bytes)]), { contentType, limitBytes: 1_000_000 });
}
async function readAll(body: Readable): Promise<string> {
  return Buffer.concat(await body.toArray()).toString();
}
async function filesOnDisk() {
  return (await readdir(directory, { recursive: true, withFileTypes: true })).filter((entry) =>
    entry.isFile(),
  );
}

describe('file media store', () => {
  it('keeps bytes, size, type and digest', async () => {
    const stored = await put(clip, 'hello world');
    expect(stored).toEqual({
      size: 11,
      content_type: 'video/mp4',
      sha256: sha256('hello world'),
      modified_at: expect.any(Date),
    });
    expect(await store.head(clip)).toEqual(stored);
    expect(await readAll(await store.read(clip))).toBe('hello world');
  });

  it('reads ranges with both ends included', async () => {
    await put(clip, 'hello world');
    expect(await readAll(await store.read(clip, { start: 4, end: 6 }))).toBe('o w');
  });

  it('answers null, not_found and false for what does not exist', async () => {
    await put({ job_id: 'job_1', file: 'folder/a' }, 'a');
    for (const file of ['missing', 'folder', 'folder/a/below']) {
      const path = { job_id: 'job_1', file };
      expect(await store.head(path)).toBeNull();
      expect(await store.delete(path)).toBe(false);
      await expect(store.read(path)).rejects.toMatchObject({ code: 'not_found' });
    }
  });

  it('leaves nothing of an upload that breaks off, and keeps what was there', async () => {
    const broken = (): Readable =>
      Readable.from(
        (async function* () {
          yield Buffer.from('half of it');
          throw new Error('connection lost');
        })(),
      );
    const options = { contentType: 'video/mp4', limitBytes: 1_000 };
    await expect(store.put(clip, broken(), options)).rejects.toThrow('connection lost');
    expect(await filesOnDisk()).toEqual([]);
    await put(clip, 'whole');
    await expect(store.put(clip, broken(), options)).rejects.toThrow('connection lost');
    expect(await readAll(await store.read(clip))).toBe('whole');
  });

  it('refuses what is larger than the limit and leaves the source open for an answer', async () => {
    const body = Readable.from([Buffer.alloc(600), Buffer.alloc(600), Buffer.alloc(600)]);
    const upload = store.put(clip, body, { contentType: 'video/mp4', limitBytes: 1_000 });
    await expect(upload).rejects.toMatchObject({ code: 'body_too_large' });
    expect(body.destroyed).toBe(false);
    expect(await filesOnDisk()).toEqual([]);
  });

  it('shows an old or a new object while it is replaced, never a mixture', async () => {
    const versions = ['one', 'another'].map((text) => text.repeat(20_000));
    const allowed = new Set(versions.map((text) => `${text.length} ${sha256(text)}`));
    await put(clip, versions[0] ?? '');
    let replacing = true;
    const writer = (async () => {
      for (let i = 1; i <= 40; i += 1) await put(clip, versions[i % 2] ?? '');
      replacing = false;
    })();
    while (replacing) {
      const object = await store.head(clip);
      expect(allowed).toContain(`${object?.size} ${object?.sha256}`);
      expect(object?.content_type).toBe('video/mp4');
      expect(versions).toContain(await readAll(await store.read(clip)));
    }
    await writer;
  });

  it('lists the objects of one job, its sidecars hidden, folders included', async () => {
    await put(clip, 'a');
    await put({ job_id: 'job_1', file: 'parts/b.wav' }, 'bb', 'audio/wav');
    await put({ job_id: 'job_10', file: 'foreign' }, 'c');
    const listed = await store.list('job_1');
    expect(listed.map(({ file, object }) => [file, object.size, object.content_type])).toEqual([
      ['clip.mp4', 1, 'video/mp4'],
      ['parts/b.wav', 2, 'audio/wav'],
    ]);
    expect(await store.list('job_none')).toEqual([]);
  });

  it('forgets a deleted object with its sidecar', async () => {
    await put(clip, 'a');
    expect(await store.delete(clip)).toBe(true);
    expect(await store.delete(clip)).toBe(false);
    expect(await filesOnDisk()).toEqual([]);
  });

  it('measures a file that was put there by hand', async () => {
    await mkdir(join(directory, 'job_1'));
    await put(clip, 'stored');
    await writeFile(join(directory, 'job_1', 'clip.mp4'), 'edited by hand');
    expect(await store.head(clip)).toMatchObject({ size: 14, sha256: sha256('edited by hand') });
  });

  it('never leaves its directory', async () => {
    for (const path of [
      { job_id: '..', file: 'x' },
      { job_id: 'job_1', file: '../../x' },
      { job_id: 'job_1', file: 'a//b' },
      { job_id: '~incoming', file: 'x' },
      { job_id: 'job_1', file: 'x\0' },
      { job_id: 'job_1', file: '' },
    ]) {
      await expect(put(path, 'x')).rejects.toMatchObject({ code: 'request_invalid' });
      await expect(store.head(path)).rejects.toMatchObject({ code: 'request_invalid' });
    }
    expect(await filesOnDisk()).toEqual([]);
  });

  it('refuses a name that is a file and a folder at once', async () => {
    await put({ job_id: 'job_1', file: 'a' }, 'x');
    await put({ job_id: 'job_1', file: 'b/c' }, 'x');
    await expect(put({ job_id: 'job_1', file: 'a/b' }, 'x')).rejects.toMatchObject({
      code: 'state_conflict',
    });
    await expect(put({ job_id: 'job_1', file: 'b' }, 'x')).rejects.toMatchObject({ code: 'state_conflict' });
  });
});

describe('createMediaStore', () => {
  it.each(['s3://bucket', 'file://', '/plain/path', 'http://host'])(
    'refuses %s and names what is allowed',
    (url) => {
      expect(() => createMediaStore(url)).toThrow(/file:\/\/DIR/);
    },
  );
});
