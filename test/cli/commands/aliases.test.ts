import { expect, it } from 'vitest';
import { runCapstan } from '../../../src/cli/program.ts';
import { serve } from '../support/http-server.ts';
import { aShell } from '../support/shell.ts';

/** Runs a command against an API that gives this answer. @returns what was printed and asked */
async function capstan(words: readonly string[], answer: object) {
  const asked: string[] = [];
  const url = await serve(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    asked.push(`${request.method} ${request.url}${body === '' ? '' : ` ${body}`}`);
    response.end(JSON.stringify(answer));
  });
  const { shell, seen } = aShell();
  await runCapstan([...words, '--url', url, '--key', 'k'], shell);
  return { ...seen, asked };
}

const alias = {
  name: 'openai/gpt-4o',
  capability: 'model.capable',
  set_by: 'key_1',
  updated_at: '2026-01-09T00:00:00.000Z',
};

it('lists the names of the project, and says how to set one where there is none', async () => {
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
