import { expect, it } from 'vitest';
import { capstan } from '../support/capstan.ts';

const alias = {
  name: 'openai/gpt-4o',
  capability: 'model.capable',
  set_by: 'key_1',
  updated_at: '2026-01-09T00:00:00.000Z',
};

it('lists the names of the project, and explains how to set one where none exists', async () => {
  const { stdout, asked } = await capstan(['aliases'], { items: [alias], next_cursor: null });
  expect(asked).toEqual(['GET /v1/aliases']);
  expect(stdout).toMatch(/^ALIAS +CAPABILITY +BY +SINCE\nopenai\/gpt-4o +model\.capable +key_1 /);
  const none = await capstan(['aliases', 'ls'], { items: [], next_cursor: null });
  expect(none.stdout + none.stderr).toContain('capstan aliases set NAME CAPABILITY');
});

it('sets and removes a name, with a slash in it', async () => {
  const set = await capstan(['aliases', 'set', 'openai/gpt-4o', 'model.capable'], alias);
  expect([set.asked, set.stdout]).toEqual([
    ['PUT /v1/aliases/openai%2Fgpt-4o {"capability":"model.capable"}'],
    'openai/gpt-4o is model.capable\n',
  ]);
  const removed = await capstan(['aliases', 'rm', 'openai/gpt-4o'], {});
  expect(removed.asked).toEqual(['DELETE /v1/aliases/openai%2Fgpt-4o']);
});
