import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { resolveConnection } from '../../../src/cli/client/connection.ts';
import { UnreachableError, UsageError } from '../../../src/cli/errors.ts';

const stack = {
  api_url: 'http://127.0.0.1:7400',
  api_key: 'stack-key',
  project_id: 'stack-project',
  console_url: 'http://127.0.0.1:7400/ui/',
  temporal_address: '127.0.0.1:7233',
  temporal_ui_url: null,
  database_url: 'postgres://127.0.0.1/capstan',
  media_url: 'file:///media',
  pids: {},
};

async function aFolder(stackText?: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'capstan-cli-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  if (stackText !== undefined) await writeFile(join(folder, 'stack.json'), stackText);
  return folder;
}

const fromStack = { url: 'http://127.0.0.1:7400', key: 'stack-key', project: 'stack-project' };

it('takes everything from the stack file by default', async () => {
  const data = await aFolder(JSON.stringify(stack));
  expect(await resolveConnection({ data }, {})).toEqual(fromStack);
});

it('looks for the stack in the folder of --data, then in CAPSTAN_DATA', async () => {
  const data = await aFolder(JSON.stringify(stack));
  expect(await resolveConnection({}, { CAPSTAN_DATA: data })).toEqual(fromStack);
  const other = await aFolder(JSON.stringify({ ...stack, api_key: 'other-key' }));
  expect(await resolveConnection({ data: other }, { CAPSTAN_DATA: data })).toMatchObject({
    key: 'other-key',
  });
});

it('prefers a flag to the environment and the environment to the stack file, part by part', async () => {
  const data = await aFolder(JSON.stringify(stack));
  const environment = {
    CAPSTAN_URL: 'http://env:1/',
    CAPSTAN_API_KEY: 'env-key',
    CAPSTAN_PROJECT: 'env-project',
  };
  expect(await resolveConnection({ data, url: 'https://flag/base/' }, environment)).toEqual({
    url: 'https://flag/base',
    key: 'env-key',
    project: 'env-project',
  });
  expect(await resolveConnection({ data, project: 'mine' }, {})).toEqual({ ...fromStack, project: 'mine' });
});

it("never sends the stack file's key to another server", async () => {
  const data = await aFolder(JSON.stringify(stack));
  const nothing = { key: undefined, project: undefined };
  expect(await resolveConnection({ data, url: 'http://other' }, {})).toEqual({
    url: 'http://other',
    ...nothing,
  });
  expect(await resolveConnection({ data, url: 'http://127.0.0.1:7400/' }, {})).toEqual(fromStack);
});

it("does not pair another key with the stack file's project", async () => {
  const data = await aFolder(JSON.stringify(stack));
  const expected = { url: 'http://127.0.0.1:7400', key: 'mine', project: undefined };
  expect(await resolveConnection({ data, key: 'mine' }, {})).toEqual(expected);
});

it('explains how to start Capstan when no address is set', async () => {
  const attempt = resolveConnection({ data: await aFolder() }, { CAPSTAN_URL: '' });
  await expect(attempt).rejects.toThrow(UnreachableError);
  await expect(attempt).rejects.toThrow('start one with `capstan dev`');
});

it('names a stack file that it cannot use', async () => {
  const data = await aFolder('{"api_url": 1}');
  await expect(resolveConnection({ data }, {})).rejects.toThrow(`${data}/stack.json is not a stack file`);
});

it('refuses a URL that is not HTTP', async () => {
  await expect(resolveConnection({ url: 'localhost:7400', key: 'k' }, {})).rejects.toThrow(UsageError);
});
