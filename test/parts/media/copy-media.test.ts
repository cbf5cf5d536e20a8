import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { createMediaStore } from '@capstan/media-store/create-media-store';
import { expect, onTestFinished, test } from 'vitest';
import { copyMedia } from '../../../src/parts/media/copy-media.ts';

async function aFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'capstan-copy-media-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

async function put(url: string, job_id: string, file: string, text: string): Promise<void> {
  const store = await createMediaStore(url);
  await store.put({ job_id, file }, Readable.from(text), { contentType: 'text/x-odd', limitBytes: 100 });
}

test('files come with their types; a repeated copy keeps equal ones, and refuses to replace another', async () => {
  const [from, folder] = [`file://${await aFolder()}`, await aFolder()];
  const to = `file://${folder}`;
  await put(from, 'job_a', 'deep/a.txt', 'one');
  await put(from, 'job_b', 'b.txt', 'three');
  expect(await copyMedia(from, to)).toEqual({ copied: 2, bytes: 8, kept: 0 });
  const found = await (await createMediaStore(to)).head({ job_id: 'job_a', file: 'deep/a.txt' });
  expect(found).toMatchObject({ size: 3, content_type: 'text/x-odd' });
  expect(await copyMedia(from, to)).toEqual({ copied: 0, bytes: 0, kept: 2 });
  await writeFile(join(folder, 'job_b/b.txt'), 'other');
  await expect(copyMedia(from, to)).rejects.toThrow('has another file at media://job_b/b.txt');
  await expect(copyMedia(from, from)).rejects.toThrow('MEDIA_URL is the folder to copy from');
});
