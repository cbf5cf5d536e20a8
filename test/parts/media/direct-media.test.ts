import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { MediaPath, UploadTicket } from '@capstan/core/contracts/media';
import { createFileMediaStore } from '@capstan/media-store/file-store';
import type { DirectAccess, MediaStore } from '@capstan/media-store/media-store';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { insertJob } from '../../../src/db/run/job.ts';
import { newId } from '../../../src/parts/ids.ts';
import { createDirectMedia } from '../../../src/parts/media/direct-media.ts';
import { createMediaLibrary } from '../../../src/parts/media/media-library.ts';
import { useDatabase } from '../../support/database.ts';
import { aProject } from '../../support/factories.ts';

const { db } = useDatabase();
let folder: string;
let project_id: string;
let job_id: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'capstan-direct-'));
});
afterAll(() => rm(folder, { recursive: true }));
beforeEach(async () => {
  project_id = (await aProject(db)).project_id;
  job_id = newId('job');
  await insertJob(db, { project_id, job_id }, {});
});

const given = { contentType: 'text/plain', limitBytes: 1_000 };

function bodyOf(text: string): Readable {
  return Readable.from([Buffer.from(text)]);
}

function announced(text: string, size = text.length) {
  const sha256 = createHash('sha256').update(text).digest('hex');
  return { size, sha256, content_type: 'text/plain' };
}

function tokenOf(ticket: UploadTicket): string {
  const url = 'parts' in ticket ? ticket.complete_url : ticket.url;
  return url.split('/').at(-1) ?? '';
}

function aPlace(file: string): MediaPath {
  return { job_id, file };
}

interface Given {
  readonly store?: Partial<MediaStore>;
  /** How clients reach the store; without it they do not. */
  readonly direct?: Pick<DirectAccess, 'completeParts'>;
  readonly bytesPerProject?: number;
}

/** A folder, as a bucket that clients reach. The behaviour of the bucket itself is a test of the store. */
function media({ store: changed = {}, direct, bytesPerProject = 0 }: Given) {
  const files = createFileMediaStore(folder);
  const expires_at = new Date(Date.now() + 3_600_000);
  const access: DirectAccess = {
    uploadMs: 3_600_000,
    allowRead: async () => 'https://bucket.test/',
    allowUpload: async () => ({ url: 'https://bucket.test/', headers: {}, expires_at }),
    allowParts: async () => ({ upload_id: 'one', parts: [], expires_at }),
    completeParts: async () => null,
    ...direct,
  };
  const store: MediaStore = {
    ...files,
    ...changed,
    ...(direct === undefined ? {} : { direct: access }),
  };
  const library = createMediaLibrary({ db, store, bytesPerProject });
  const passesBy = direct !== undefined;
  const service = createDirectMedia({ db, store, library, bytesPerProject, passesBy, limitBytes: 1e9 });
  return { store, library, service };
}

const completesNothing = { completeParts: async () => null };

async function read(store: MediaStore, path: MediaPath): Promise<string> {
  const opened = (await store.open(path)) ?? expect.fail('missing');
  return Buffer.concat(await (await opened.read()).toArray()).toString();
}

function rows() {
  return db('media_object').where({ job_id }).select('file', 'size', 'state').orderBy(['file', 'state']);
}

/** Every announcement, in its state after a day. */
async function letAnnouncementsAge(): Promise<void> {
  await db('media_object')
    .where({ job_id, state: 'announced' })
    .update({ created_at: db.raw(`now() - interval '26 hours'`) });
}

const large = 20_000_000;

describe('an upload that is completed', () => {
  it('deletes no file that it has not written: the existing one came otherwise', async () => {
    const { service, library, store } = media({});
    const path = aPlace('clip.mp4');
    await library.put(path, bodyOf('good'), given);
    const token = tokenOf(await service.announce(project_id, path, announced('new')));
    await expect(service.complete(token)).rejects.toMatchObject({ code: 'upload_incomplete' });
    expect(await read(store, path)).toBe('good');
    await service.receive(token, bodyOf('new'));
    expect((await service.complete(token)).object.size).toBe(3);
  });

  it('deletes nothing that replaced it, before its answer or after', async () => {
    const path = aPlace('clip.mp4');
    const { service, library, store } = media({
      direct: {
        completeParts: async () => {
          const { etag } = await store.put(path, bodyOf('its parts'), given);
          await store.put(path, bodyOf('newer'), given);
          return etag;
        },
      },
    });
    const upload = announced('another', large);
    const token = tokenOf(await service.announce(project_id, path, upload));
    await expect(service.complete(token)).rejects.toMatchObject({ code: 'upload_incomplete' });
    await expect(service.complete(token)).rejects.toMatchObject({ code: 'upload_incomplete' });
    expect(await read(store, path)).toBe('newer');
    expect(await library.delete(path)).toBe(true);
  });

  it('is answered again after a lost answer, as long as its file exists', async () => {
    const path = aPlace('clip.mp4');
    let completed = 0;
    const { service, library, store } = media({
      direct: {
        completeParts: async () => {
          completed++;
          return (await store.put(path, bodyOf('its parts'), given)).etag;
        },
      },
    });
    const token = tokenOf(await service.announce(project_id, path, announced('its parts', large)));
    const first = await service.complete(token);
    expect(await service.complete(token)).toEqual(first);
    await library.put(path, bodyOf('newer'), given);
    await expect(service.complete(token)).rejects.toMatchObject({ code: 'not_found' });
    expect([await read(store, path), completed]).toEqual(['newer', 1]);
  });

  it('is deleted when it is another file, also by a request after a killed process', async () => {
    const path = aPlace('clip.mp4');
    let isKilled = true;
    const { service, store } = media({
      store: {
        open: async (at) => {
          if (isKilled) throw new Error('killed');
          return createFileMediaStore(folder).open(at);
        },
        head: async (at) => {
          const object = await createFileMediaStore(folder).head(at);
          return object === null ? null : { ...object, sha256: null };
        },
      },
      direct: {
        completeParts: async () => (await store.put(path, bodyOf('its parts'), given)).etag,
      },
    });
    const token = tokenOf(await service.announce(project_id, path, announced('another', large)));
    await expect(service.complete(token)).rejects.toThrow('killed');
    isKilled = false;
    await expect(service.complete(token)).rejects.toMatchObject({ code: 'digest_mismatch' });
    expect([await store.exists(path), await rows()]).toEqual([false, []]);
  });
});

describe('an upload whose file has come', () => {
  it('is answered again without being written, and only as long as its file exists', async () => {
    const { service, store } = media({});
    const path = aPlace('clip.mp4');
    const token = tokenOf(await service.announce(project_id, path, announced('good')));
    const first = await service.receive(token, bodyOf('good'));
    expect(await service.receive(token, bodyOf('good'))).toEqual(first);
    await store.put(path, bodyOf('newer'), given); // as an instance does that has the folder
    await expect(service.receive(token, bodyOf('good'))).rejects.toMatchObject({ code: 'not_found' });
    expect(await read(store, path)).toBe('newer');
    await expect(service.complete(token)).rejects.toMatchObject({ code: 'not_found' });
  });
});

describe('an announcement counts', () => {
  it('no more when its file came to a bucket and was deleted or replaced since', async () => {
    const { service, library, store } = media({ bytesPerProject: 20, direct: completesNothing });
    const sendPast = async (file: string, letter: string): Promise<void> => {
      await service.announce(project_id, aPlace(file), announced(letter.repeat(15)));
      await store.put(aPlace(file), bodyOf(letter.repeat(15)), given);
    };
    await sendPast('a', 'a');
    expect(await library.delete(aPlace('a'))).toBe(true);
    await sendPast('b', 'b');
    await library.put(aPlace('b'), bodyOf('12345'), given);
    await library.put(aPlace('c'), bodyOf('x'.repeat(15)), given);
    const more = library.put(aPlace('d'), bodyOf('y'), given);
    await expect(more).rejects.toMatchObject({ code: 'media_quota', details: { stored_bytes: 20 } });
  });

  it('no more when it has come', async () => {
    const { service, library } = media({ bytesPerProject: 20 });
    for (const letter of 'abcdefghij') {
      const text = letter.repeat(15);
      const token = tokenOf(await service.announce(project_id, aPlace('a'), announced(text)));
      await service.receive(token, bodyOf(text));
      await service.receive(token, bodyOf(text)); // the answer was lost
    }
    expect(await rows()).toEqual([{ file: 'a', size: '15', state: 'stored' }]);
    await library.put(aPlace('b'), bodyOf('x'.repeat(5)), given);
  });

  it('once for a place, whatever may still come there', async () => {
    const { service, library, store } = media({ bytesPerProject: 20, direct: completesNothing });
    for (const letter of 'abcdefghij') {
      await service.announce(project_id, aPlace('a'), announced(letter.repeat(15)));
      await store.put(aPlace('a'), bodyOf(letter.repeat(15)), given);
      await library.head(aPlace('a'));
    }
    const second = library.put(aPlace('b'), bodyOf('x'.repeat(6)), given);
    await expect(second).rejects.toMatchObject({ code: 'media_quota', details: { stored_bytes: 15 } });
    await library.put(aPlace('b'), bodyOf('x'.repeat(5)), given);
  });

  it('as a file when it came to a bucket and was not read for a day', async () => {
    const { service, library, store } = media({ bytesPerProject: 20, direct: completesNothing });
    await service.announce(project_id, aPlace('a'), announced('x'.repeat(15)));
    await service.announce(project_id, aPlace('never'), announced('y'));
    await store.put(aPlace('a'), bodyOf('x'.repeat(15)), given);
    await letAnnouncementsAge();
    expect(await library.sweep(3_600_000)).toBe(2);
    expect(await rows()).toEqual([{ file: 'a', size: '15', state: 'stored' }]);
    const second = library.put(aPlace('b'), bodyOf('x'.repeat(6)), given);
    await expect(second).rejects.toMatchObject({ code: 'media_quota' });
  });
});

describe('an announced file that never came', () => {
  it('is forgotten though the store refuses to sweep, and the store sweeps though a file cannot be looked at', async () => {
    let swept = 0;
    const refusing = media({ store: { sweep: () => Promise.reject(new Error('AccessDenied')) } });
    const { library, service } = media({
      store: {
        sweep: async () => ++swept,
        head: async ({ file }) => {
          if (file === 'odd') throw new Error('unreadable');
          return null;
        },
      },
    });
    for (const file of ['odd', 'a']) await service.announce(project_id, aPlace(file), announced('x'));
    await letAnnouncementsAge();
    await expect(library.sweep(3_600_000)).rejects.toThrow('unreadable');
    expect(swept).toBe(1);
    expect(await rows()).toEqual([{ file: 'odd', size: '1', state: 'announced' }]);
    await expect(refusing.library.sweep(3_600_000)).rejects.toThrow('AccessDenied');
    expect(await rows()).toEqual([]);
  });

  it('goes in statements of a bounded size', async () => {
    const { library } = media({});
    await db.raw(
      `insert into media_object (project_id, job_id, file, size, sha256, content_type, state, token, created_at)
       select ?, ?, 'f' || n, 1, '\\x00', 'text/plain', 'announced', sha256(?::bytea || n::text::bytea), now() - interval '26 hours'
         from generate_series(1, 120) n`,
      [project_id, job_id, job_id],
    );
    const sizes: number[] = [];
    const count = ({ command, rowCount }: { command?: string; rowCount?: number }) => {
      if (command === 'DELETE') sizes.push(rowCount ?? 0);
    };
    db.on('query-response', count);
    expect(await library.sweep(3_600_000)).toBe(120);
    db.off('query-response', count);
    expect(sizes).toEqual([50, 50, 20]);
    expect(await rows()).toEqual([]);
  });
});
