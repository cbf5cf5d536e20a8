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

const publisher = { name: 'concat', projects: ['prj_1', 'prj_2'], updated_at: '2026-01-09T00:00:00.000Z' };

it('lists who may register under which name', async () => {
  const { stdout, asked } = await capstan(['publishers'], { items: [publisher], next_cursor: null });
  expect([asked, stdout]).toEqual([
    ['GET /v1/publishers?limit=200'],
    'NAME    PROJECTS\nconcat  prj_1, prj_2\n',
  ]);
  const nobody = await capstan(['publishers', 'ls', '--json'], { items: [], next_cursor: null });
  expect(JSON.parse(nobody.stdout)).toEqual({ items: [], next_cursor: null });
});

it('gives a name to projects', async () => {
  const { stdout, asked } = await capstan(['publishers', 'set', 'concat', 'prj_1', 'prj_2'], publisher);
  expect(asked).toEqual(['PUT /v1/publishers/concat {"projects":["prj_1","prj_2"]}']);
  expect(stdout).toContain('concat  prj_1, prj_2');
});

it('refuses a name without projects, without asking', async () => {
  const { asked, exitCode } = await capstan(['publishers', 'set', 'concat'], {});
  expect([asked, exitCode]).toEqual([[], 1]);
});
