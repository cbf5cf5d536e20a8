import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { createFileMediaStore } from '@capstan/media-store/file-store';
import type { MediaStore } from '@capstan/media-store/media-store';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { insertJob } from '../../../src/db/run/job.ts';
import { newId } from '../../../src/parts/ids.ts';
import { createDirectMedia } from '../../../src/parts/media/direct-media.ts';
import { createMediaLibrary } from '../../../src/parts/media/media-library.ts';
import { useDatabase } from '../../support/database.ts';
import { aProject } from '../../support/factories.ts';

const { db } = useDatabase();
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'capstan-library-'));
});
afterAll(() => rm(folder, { recursive: true }));

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

async function aJob(projectId?: string): Promise<string> {
  const project_id = projectId ?? (await aProject(db)).project_id;
  const job_id = newId('job');
  await insertJob(db, { project_id, job_id }, {});
  return job_id;
}

/** As S3 is: it has no digest of its own, and `reads` counts how often its bytes are read. */
function aStoreWithoutDigests(): MediaStore & { reads: () => number } {
  const files = createFileMediaStore(folder);
  let reads = 0;
  return {
    ...files,
    reads: () => reads,
    head: async (path) => {
      const object = await files.head(path);
      return object === null ? null : { ...object, sha256: null };
    },
    open: async (path) => {
      const opened = await files.open(path);
      if (opened === null) return null;
      const read: typeof opened.read = (span) => {
        reads++;
        return opened.read(span);
      };
      return { ...opened, read, object: { ...opened.object, sha256: null } };
    },
  };
}

function aLibrary(bytesPerProject = 0) {
  const store = aStoreWithoutDigests();
  return { ...createMediaLibrary({ db, store, bytesPerProject }), store, bytesPerProject };
}

function bodyOf(text: string): Readable {
  return Readable.from([Buffer.from(text)]);
}

const given = { contentType: 'text/plain', limitBytes: 1_000 };

function rowsOf(job_id: string) {
  return db('media_object').where({ job_id }).select('file', 'size', 'content_type', 'state').orderBy('file');
}

describe('what is known of a file', () => {
  it('is kept when it is stored, and the file is not read for that', async () => {
    const library = aLibrary();
    const path = { job_id: await aJob(), file: 'a.txt' };
    await library.put(path, bodyOf('hello'), given);
    expect(await library.head(path)).toMatchObject({ sha256: sha256('hello'), size: 5 });
    expect((await library.list(path.job_id)).files).toEqual([
      {
        file: 'a.txt',
        object: expect.objectContaining({ sha256: sha256('hello'), content_type: 'text/plain' }),
      },
    ]);
    expect(library.store.reads()).toBe(0);
    expect(await rowsOf(path.job_id)).toEqual([
      { file: 'a.txt', size: '5', content_type: 'text/plain', state: 'stored' },
    ]);
  });

  it('of one that was written past it is measured once, by all who ask together', async () => {
    const library = aLibrary();
    const path = { job_id: await aJob(), file: 'a.txt' };
    await library.store.put(path, bodyOf('by an instance'), given);
    const heads = await Promise.all(Array.from({ length: 5 }, () => library.head(path)));
    for (const head of heads) expect(head?.sha256).toBe(sha256('by an instance'));
    await library.list(path.job_id);
    expect(library.store.reads()).toBe(1);
    await library.store.put(path, bodyOf('replaced'), given);
    expect((await library.head(path))?.sha256).toBe(sha256('replaced'));
    expect(library.store.reads()).toBe(2);
    // Another process finds the row.
    const other = aLibrary();
    expect((await other.head(path))?.sha256).toBe(sha256('replaced'));
    expect(other.store.reads()).toBe(0);
  });

  it('of a job that went while it was written is not kept, nor the file', async () => {
    const library = aLibrary();
    const path = { job_id: await aJob(), file: 'late.txt' };
    const body = Readable.from(
      (async function* () {
        yield Buffer.from('begun');
        await library.deleteJob(path.job_id);
        await db('job').where({ job_id: path.job_id }).delete();
        yield Buffer.from('ended');
      })(),
    );
    await expect(library.put(path, body, given)).rejects.toMatchObject({ code: 'not_found' });
    expect(await library.store.exists(path)).toBe(false);
    expect(await rowsOf(path.job_id)).toEqual([]);
  });

  it('goes with the file, and all of it with the job', async () => {
    const library = aLibrary();
    const job_id = await aJob();
    for (const file of ['a', 'deep/b']) await library.put({ job_id, file }, bodyOf(file), given);
    await mkdir(join(folder, job_id, 'past'), { recursive: true });
    await writeFile(join(folder, job_id, 'past', 'the-api'), 'x');
    expect(await library.delete({ job_id, file: 'a' })).toBe(true);
    expect((await rowsOf(job_id)).map(({ file }) => file)).toEqual(['deep/b']);
    await expect(db('job').where({ job_id }).delete()).rejects.toThrow('media_object');
    expect(await library.deleteJob(job_id)).toBe(2);
    expect(await library.deleteJob(job_id)).toBe(0);
    expect([await rowsOf(job_id), (await library.list(job_id)).files]).toEqual([[], []]);
    await db('job').where({ job_id }).delete();
  });
});

describe('the bytes of a project', () => {
  it('are held to what it may have, its other jobs counted', async () => {
    const { project_id } = await aProject(db);
    const [one, two] = [await aJob(project_id), await aJob(project_id)];
    const library = aLibrary(20);
    await library.put({ job_id: one, file: 'a' }, bodyOf('x'.repeat(12)), given);
    const refused = library.put({ job_id: two, file: 'b' }, bodyOf('x'.repeat(9)), given);
    await expect(refused).rejects.toMatchObject({
      code: 'media_quota',
      details: { stored_bytes: 12, allowed_bytes: 20 },
    });
    expect(await library.exists({ job_id: two, file: 'b' })).toBe(false);
    await library.put({ job_id: two, file: 'b' }, bodyOf('x'.repeat(8)), given);
    // What it replaces is not counted, nor what another project has.
    await library.put({ job_id: one, file: 'a' }, bodyOf('y'.repeat(12)), given);
    await library.put({ job_id: await aJob(), file: 'a' }, bodyOf('y'.repeat(20)), given);
    const path = { job_id: two, file: 'c' };
    const copied = library.copy({ job_id: one, file: 'a' }, path, sha256('y'.repeat(12)));
    await expect(copied).rejects.toMatchObject({ code: 'media_quota' });
    await library.delete({ job_id: one, file: 'a' });
    expect(await library.put(path, bodyOf('x'.repeat(12)), given)).toMatchObject({ size: 12 });
  });

  it('count what was announced until it has come or is too old', async () => {
    const { project_id } = await aProject(db);
    const job_id = await aJob(project_id);
    const library = aLibrary(20);
    const direct = createDirectMedia({
      db,
      store: library.store,
      library,
      bytesPerProject: library.bytesPerProject,
      passesBy: false,
      limitBytes: 1_000,
    });
    const upload = { size: 15, sha256: sha256('z'.repeat(15)), content_type: 'text/plain' };
    const ticket = await direct.announce(project_id, { job_id, file: 'a' }, upload);
    const another = direct.announce(project_id, { job_id, file: 'b' }, upload);
    await expect(another).rejects.toMatchObject({ code: 'media_quota' });
    const token = 'url' in ticket ? (ticket.url.split('/').at(-1) ?? '') : '';
    await direct.receive(token, bodyOf('z'.repeat(15)));
    await library.put({ job_id, file: 'b' }, bodyOf('x'.repeat(5)), given);
    await db('media_object')
      .where({ state: 'announced' })
      .update({ created_at: new Date(0) });
    await library.sweep(3_600_000);
    expect((await rowsOf(job_id)).map(({ state }) => state)).toEqual(['stored', 'stored']);
  });
});
