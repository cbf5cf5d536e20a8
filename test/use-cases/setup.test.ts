import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createVerifiedKeys } from '../../src/parts/access/verified-keys.ts';
import { identify as identifyBy } from '../../src/use-cases/access/identification.ts';
import { prepareDatabase } from '../../src/use-cases/setup.ts';
import { useDatabase } from '../support/database.ts';

const { db, url } = useDatabase(2);
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'capstan-setup-'));
});
afterAll(() => rm(folder, { recursive: true }));

function identify(key: string) {
  return identifyBy({ db, verifiedKeys: createVerifiedKeys(0) }, key);
}

describe('a first start', () => {
  test('makes one project and one key, also when several processes start at once', async () => {
    const apiKeyFile = join(folder, 'once', 'api-key');
    const starts = await Promise.all([1, 2, 3, 4].map(() => prepareDatabase(url, { apiKeyFile })));
    expect(new Set(starts.map(({ project_id, api_key }) => `${project_id} ${api_key}`)).size).toBe(1);
    expect(await db('project').where({ name: 'default' })).toHaveLength(1);
    expect((await stat(apiKeyFile)).mode & 0o777).toBe(0o600);
    expect((await readFile(apiKeyFile, 'utf8')).trim()).toBe(starts[0]?.api_key);
    expect((await identify(starts[0]?.api_key ?? ''))?.scopes.has('admin')).toBe(true);
  });
});

describe('a later start', () => {
  test('reuses the key, and closes its file to others', async () => {
    const apiKeyFile = join(folder, 'later');
    const first = await prepareDatabase(url, { apiKeyFile });
    await writeFile(apiKeyFile, first.api_key, { mode: 0o644 });
    expect(await prepareDatabase(url, { apiKeyFile })).toEqual(first);
    expect((await stat(apiKeyFile)).mode & 0o777).toBe(0o600);
  });

  test('makes another key when the one it has no longer works, and that one holds every project', async () => {
    const apiKeyFile = join(folder, 'revoked');
    const first = await prepareDatabase(url, { apiKeyFile });
    await db('api_key').update({ revoked_at: new Date() });
    await db('project').insert({ project_id: 'prj_zz', name: 'second' });
    const second = await prepareDatabase(url, { apiKeyFile });
    expect(second.project_id).toBe(first.project_id);
    expect(await identify(first.api_key)).toBe(null);
    expect((await identify(second.api_key))?.projects).toEqual([first.project_id, 'prj_zz']);
    expect((await readFile(apiKeyFile, 'utf8')).trim()).toBe(second.api_key);
  });
});
