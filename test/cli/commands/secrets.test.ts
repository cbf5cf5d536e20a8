import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { capstan } from '../support/capstan.ts';

const secret = {
  name: 'web-token',
  version: 3,
  capabilities: ['publish.*'],
  hosts: [],
  set_by: 'key_1',
  set_at: '2026-01-09T00:00:00.000Z',
  last_used_at: null,
};

it('lists the secrets, and explains how to set one where none exists', async () => {
  const { stdout, asked } = await capstan(['secrets'], {
    items: [secret],
    next_cursor: null,
    can_be_set: true,
  });
  expect(asked).toEqual(['GET /v1/secrets']);
  expect(stdout).toMatch(/^SECRET +VERSION +CAPABILITIES +BY +SET\nweb-token +3 +publish\.\* +key_1 /);
  const none = await capstan(['secrets', 'ls'], { items: [], next_cursor: null, can_be_set: true });
  expect(none.stdout + none.stderr).toContain('capstan secrets set NAME');
});

it('sets a secret to the text of stdin, without its last line break', async () => {
  const args = ['secrets', 'set', 'web-token', '-c', 'publish.*', '-c', 'mail', '--host', 'a.test'];
  const set = await capstan(args, secret, 'a value\nof lines\n');
  expect([set.asked, set.stdout]).toEqual([
    [
      'PUT /v1/secrets/web-token {"value":"a value\\nof lines","capabilities":["publish.*","mail"],"hosts":["a.test"]}',
    ],
    'web-token is set, version 3\n',
  ]);
});

it('sets a secret to the text of a file', async () => {
  const file = join(await mkdtemp(join(tmpdir(), 'capstan-secret-')), 'token.txt');
  await writeFile(file, 'from a file\r\n');
  const { asked } = await capstan(['secrets', 'set', 'a', '-c', '*', '--file', file], secret);
  expect(asked).toEqual(['PUT /v1/secrets/a {"value":"from a file","capabilities":["*"],"hosts":[]}']);
});

it('takes no value from an argument', async () => {
  const { exitCode, asked } = await capstan(['secrets', 'set', 'a', 'the-value', '-c', '*'], secret);
  expect([exitCode, asked]).toEqual([1, []]);
});

it('deletes a secret', async () => {
  const { asked, stdout } = await capstan(['secrets', 'delete', 'web-token'], {});
  expect([asked, stdout]).toEqual([['DELETE /v1/secrets/web-token'], 'web-token is deleted\n']);
});
