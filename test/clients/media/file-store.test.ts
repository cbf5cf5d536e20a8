import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
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
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createMediaStore } from '../../../src/clients/media/create-media-store.ts';
import type { MediaStore, OpenObject } from '../../../src/clients/media/media-store.ts';
import { countProcessorMs } from '../../support/processor-time.ts';

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
async function readAll(path: typeof clip, range?: { start: number; end: number }): Promise<string> {
  const opened = await store.open(path);
  if (opened === null) throw new Error(`${path.file} does not exist`);
  return Buffer.concat(await opened.read(range).toArray()).toString();
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
    expect(await readAll(clip)).toBe('hello world');
  });

  it('copies a file whose digest is the expected one, and the copy is a file of its own', async () => {
    const { sha256: digest } = await put(clip, 'hello');
    const copy = { job_id: 'job_2', file: 'deep/copy.mp4' };
    expect(await store.copy(clip, copy, digest)).toMatchObject({ sha256: digest, content_type: 'video/mp4' });
    await writeFile(join(directory, clip.job_id, clip.file), 'in place'); // as an instance may
    expect(await readAll(copy)).toBe('hello');
    expect((await store.head(copy))?.sha256).toBe(digest);
  });

  it('copies nothing that is missing, or another file by now, and leaves what was there', async () => {
    const copy = { job_id: 'job_2', file: 'copy.mp4' };
    await put(copy, 'before');
    expect(await store.copy(clip, copy, sha256('hello'))).toBeNull();
    await put(clip, 'edited');
    expect(await store.copy(clip, copy, sha256('hello'))).toBeNull();
    expect(await readAll(copy)).toBe('before');
    expect((await filesOnDisk()).filter(({ parentPath }) => parentPath.endsWith('~incoming'))).toEqual([]);
  });

  it('reads ranges with both ends included', async () => {
    await put(clip, 'hello world');
    expect(await readAll(clip, { start: 4, end: 6 })).toBe('o w');
  });

  it('answers null, not_found and false for what does not exist', async () => {
    await put({ job_id: 'job_1', file: 'folder/a' }, 'a');
    for (const file of ['missing', 'folder', 'folder/a/below']) {
      const path = { job_id: 'job_1', file };
      expect(await store.head(path)).toBeNull();
      expect(await store.delete(path)).toBe(false);
      expect(await store.open(path)).toBeNull();
      expect(await store.exists(path)).toBe(false);
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
    expect(await readAll(clip)).toBe('whole');
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
      const opened = await store.open(clip);
      expect(opened).not.toBeNull();
      const { object, read } = opened as OpenObject;
      expect(allowed).toContain(`${object.size} ${object.sha256}`);
      expect(object.content_type).toBe('video/mp4');
      const content = Buffer.concat(await read().toArray());
      expect([content.length, sha256(content)]).toEqual([object.size, object.sha256]);
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

  it('reads what it described, also when the object is replaced in between', async () => {
    await put(clip, 'short');
    const opened = (await store.open(clip)) as OpenObject;
    await put(clip, 'a longer one, with bytes that nobody announced');
    expect(opened.object).toMatchObject({ size: 5, sha256: sha256('short') });
    expect(Buffer.concat(await opened.read().toArray()).toString()).toBe('short');
  });

  it('reads no more than it described of a file that grows', async () => {
    await mkdir(join(directory, 'job_1'));
    await writeFile(join(directory, 'job_1', 'clip.mp4'), 'short');
    const opened = (await store.open(clip)) as OpenObject;
    await appendFile(join(directory, 'job_1', 'clip.mp4'), ' and more');
    expect(Buffer.concat(await opened.read().toArray()).toString()).toBe('short');
  });

  it('measures a file once for as long as it stays the same', async () => {
    await mkdir(join(directory, 'job_1'));
    const file = join(directory, 'job_1', 'clip.mp4');
    await writeFile(file, Buffer.alloc(50_000_000));
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
      expect(await store.list('job_1')).toEqual([]);
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
      expect(await store.list(job_id)).toEqual([]);
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

  it('sweeps away what uploads have left that broke off long ago', async () => {
    await put(clip, 'a');
    const incoming = join(directory, '~incoming');
    await writeFile(join(incoming, 'old'), 'x');
    await utimes(join(incoming, 'old'), new Date(0), new Date(0));
    await writeFile(join(incoming, 'young'), 'x');
    expect(await store.sweep(3_600_000)).toBe(1);
    expect(await readdir(incoming)).toEqual(['young']);
    expect(await readAll(clip)).toBe('a');
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
