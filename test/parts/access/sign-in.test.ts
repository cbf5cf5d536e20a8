import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readSignInSettings, type SignInConfig } from '../../../src/parts/access/sign-in.ts';

const rules = '{"ops": {"role": "admin", "projects": ["*"]}}';
const config: SignInConfig = {
  CAPSTAN_MODE: 'development',
  OIDC_ISSUER: 'http://id.example',
  OIDC_CLIENT_ID: 'capstan',
  OIDC_CLIENT_SECRET: 'secret',
  OIDC_GROUPS: rules,
};

test('without any setting there is no sign-in at a provider', async () => {
  expect(await readSignInSettings({ CAPSTAN_MODE: 'production' })).toBeNull();
});

test('groups are read from the setting or from a file', async () => {
  const file = join(await mkdtemp(join(tmpdir(), 'capstan-groups-')), 'groups.json');
  await writeFile(file, rules);
  const read = await readSignInSettings(config);
  expect(read).toMatchObject({ rules: { ops: { role: 'admin', projects: ['*'] } }, name: 'id.example' });
  expect(await readSignInSettings({ ...config, OIDC_GROUPS: file })).toEqual(read);
});

test.each([
  [
    { OIDC_CLIENT_SECRET: undefined },
    /OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_GROUPS set without OIDC_CLIENT_SECRET/,
  ],
  [{ CAPSTAN_MODE: 'production' }, /OIDC_ISSUER: "http:\/\/id.example" is not https, which production mode/],
  [{ OIDC_ISSUER: 'ftp://id.example' }, /OIDC_ISSUER/],
  [{ OIDC_GROUPS: '/nowhere.json' }, /OIDC_GROUPS: the file "\/nowhere.json" cannot be read/],
  [{ OIDC_GROUPS: '{"ops": ' }, /OIDC_GROUPS is not JSON/],
  [{ OIDC_GROUPS: '{}' }, /names no group/],
  [{ OIDC_GROUPS: '{"ops": {"projects": ["*"]}}' }, /neither a role nor scopes[\s\S]*at ops/],
  [{ OIDC_GROUPS: '{"ops": {"role": "king", "projects": ["*"]}}' }, /at ops\.role/],
  [{ OIDC_GROUPS: '{"ops": {"role": "admin", "projects": []}}' }, /at ops\.projects/],
] as const)('%j is refused in words', async (wrong, words) => {
  await expect(readSignInSettings({ ...config, ...wrong } as SignInConfig)).rejects.toThrow(words);
});
