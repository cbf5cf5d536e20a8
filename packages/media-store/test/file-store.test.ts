import { execFileSync } from 'node:child_process';
import {
  appendFile,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { countProcessorMs } from '../../../test/support/processor-time.ts';
import { createMediaStore } from '../src/create-media-store.ts';
import type { MediaStore, OpenObject } from '../src/media-store.ts';
import { clip, describeMediaStore, put as putInto, readBytes, sha256 } from './store-contract.ts';

let directory: string;
let store: MediaStore;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'capstan media 100%20-'));
  store = await createMediaStore(pathToFileURL(directory).href);
});
afterEach(() => rm(directory, { recursive: true, force: true }));

function put(path: typeof clip, bytes: string, contentType = 'video/mp4') {
  return putInto(store, path, bytes, { contentType });
}
async function readAll(path: typeof clip): Promise<string> {
  return (await readBytes(await store.open(path))).toString();
}
async function leftovers(): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}

describe('file media store', () => {
  describeMediaStore({ store: () => store, leftovers });

  it('measures a file that was put there by hand', async () => {
    await mkdir(join(directory, 'job_1'));
    await put(clip, 'stored');
    await writeFile(join(directory, 'job_1', 'clip.mp4'), 'edited by hand');
    expect(await store.head(clip)).toMatchObject({ size: 14, sha256: sha256('edited by hand') });
  });

  it('reads what it described, also when the object is replaced in between', async () => {
    await put(clip, 'short');
    const opened = (await store.open(clip)) as OpenObject;
    await put(clip, 'a longer one, with bytes that nobody announced');
    expect(opened.object).toMatchObject({ size: 5, sha256: sha256('short') });
    expect((await readBytes(opened)).toString()).toBe('short');
  });

  it('reads no more than it described of a file that grows', async () => {
    await mkdir(join(directory, 'job_1'));
    await writeFile(join(directory, 'job_1', 'clip.mp4'), 'short');
    const opened = (await store.open(clip)) as OpenObject;
    await appendFile(join(directory, 'job_1', 'clip.mp4'), ' and more');
    expect((await readBytes(opened)).toString()).toBe('short');
  });

  it('measures a file once for as long as it stays the same', async () => {
    await mkdir(join(directory, 'job_1'));
    const file = join(directory, 'job_1', 'clip.mp4');
    await writeFile(file, Buffer.alloc(20_000_000));
    const spentMs = countProcessorMs();
    const [first] = [await store.head(clip), spentMs()];
    const measuredMs = spentMs();
    for (let n = 0; n < 20; n++) expect(await store.head(clip)).toEqual(first);
    expect(spentMs() - measuredMs).toBeLessThan(5 * measuredMs);
    await writeFile(file, 'another');
    expect((await store.head(clip))?.sha256).toBe(sha256('another'));
  });

  it('keeps the type of a file that was restored from a copy', async () => {
    await put(clip, 'hello', 'video/x-own');
    const copy = await mkdtemp(join(tmpdir(), 'capstan-copy-'));
    await cp(directory, copy, { recursive: true });
    await rm(directory, { recursive: true });
    await rename(copy, directory);
    expect(await store.head(clip)).toMatchObject({ content_type: 'video/x-own', sha256: sha256('hello') });
  });

  describe('follows no link', () => {
    let secret: string;
    beforeEach(async () => {
      secret = await mkdtemp(join(tmpdir(), 'capstan-secret-'));
      await writeFile(join(secret, 'clip.mp4'), 'secret');
      await mkdir(join(directory, 'job_1'));
    });
    afterEach(() => rm(secret, { recursive: true }));

    const untouched = async () => {
      expect(await readFile(join(secret, 'clip.mp4'), 'utf8')).toBe('secret');
      expect(await readdir(secret)).toEqual(['clip.mp4']);
    };

    it('that a file is', async () => {
      await symlink(join(secret, 'clip.mp4'), join(directory, 'job_1', 'clip.mp4'));
      expect([await store.head(clip), await store.exists(clip)]).toEqual([null, false]);
      expect(await store.delete(clip)).toBe(false);
      expect((await store.list('job_1', 10)).files).toEqual([]);
      await put(clip, 'own');
      expect(await readAll(clip)).toBe('own');
      await untouched();
    });

    it.each(['job_2', 'job_1/below'])('that the folder %s is', async (folder) => {
      await symlink(secret, join(directory, folder));
      const [job_id = '', ...below] = [...folder.split('/'), 'clip.mp4'];
      const path = { job_id, file: below.join('/') };
      expect([await store.head(path), await store.exists(path)]).toEqual([null, false]);
      expect(await store.delete(path)).toBe(false);
      expect((await store.list(job_id, 10)).files).toEqual([]);
      await expect(put(path, 'own')).rejects.toMatchObject({ code: 'state_conflict' });
      await untouched();
    });

    it('that a sidecar is', async () => {
      await put(clip, 'own');
      const sidecar = join(directory, 'job_1', 'clip.mp4~meta.json');
      await rename(sidecar, join(secret, 'meta'));
      await symlink(join(secret, 'meta'), sidecar);
      expect((await store.head(clip))?.content_type).toBe('application/octet-stream');
    });

    it('and waits for no pipe', async () => {
      execFileSync('sh', ['-c', 'mkfifo "$0"', join(directory, 'job_1', 'clip.mp4')]);
      expect(await store.head(clip)).toBeNull();
    });
  });

  it('deletes the files of uploads that broke off long ago', async () => {
    await put(clip, 'a');
    const incoming = join(directory, '~incoming');
    await writeFile(join(incoming, 'old'), 'x');
    await utimes(join(incoming, 'old'), new Date(0), new Date(0));
    await writeFile(join(incoming, 'young'), 'x');
    expect(await store.sweep(3_600_000)).toBe(1);
    expect(await readdir(incoming)).toEqual(['young']);
    expect(await readAll(clip)).toBe('a');
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
  it.each(['file://', '/plain/path', 'http://host'])('refuses %s and names what is allowed', async (url) => {
    await expect(createMediaStore(url)).rejects.toThrow(/file:\/\/DIR and s3:\/\/BUCKET/);
  });
});
