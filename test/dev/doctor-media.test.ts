import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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

it('says what there will be where nothing is set, and what is wrong with what is', async () => {
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
