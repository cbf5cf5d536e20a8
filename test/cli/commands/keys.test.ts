/** `keys create`: which projects the new key gets. */
import { expect, it } from 'vitest';
import { runCapstan } from '../../../src/cli/program.ts';
import { serve } from '../support/http-server.ts';
import { aShell } from '../support/shell.ts';

const at = '2026-01-09T00:00:00.000Z';

function projectOf(id: string, name: string) {
  return {
    project_id: id,
    name,
    timezone: 'UTC',
    daily_limit_usd: 0,
    strict: false,
    on_budget: null,
    content_days: null,
    created_at: at,
  };
}

/** @returns what `keys create` printed, and the projects that it asked for; null when it asked for no key */
async function createKey(projects: readonly (readonly [string, string])[], words: readonly string[] = []) {
  let wanted: string[] | null = null;
  const url = await serve(async (request, response) => {
    if (request.method === 'GET') {
      response.end(
        JSON.stringify({ items: projects.map(([id, name]) => projectOf(id, name)), next_cursor: null }),
      );
      return;
    }
    let body = '';
    for await (const chunk of request) body += chunk;
    wanted = JSON.parse(body).projects;
    response.end(JSON.stringify({ key_id: 'key_1', key: 'cap_1' }));
  });
  const { shell, seen } = aShell();
  const command = ['keys', 'create', 'ci', '--scope', 'run:read', ...words];
  await runCapstan([...command, '--url', url, '--key', 'k'], shell);
  return { ...seen, wanted };
}

it('takes the only project that the calling key has', async () => {
  const { stdout, wanted } = await createKey([['prj_1', 'default']]);
  expect([wanted, stdout.split('\n')[0]]).toEqual([['prj_1'], 'cap_1']);
});

it('takes the named or the current project first', async () => {
  expect((await createKey([['prj_1', 'default']], ['--for', 'prj_2', '--for', 'prj_3'])).wanted).toEqual([
    'prj_2',
    'prj_3',
  ]);
  expect((await createKey([['prj_1', 'default']], ['--project', 'prj_2'])).wanted).toEqual(['prj_2']);
});

it('asks for a choice among several, with their names', async () => {
  const { stderr, exitCode, wanted } = await createKey([
    ['prj_1', 'default'],
    ['prj_2', 'films'],
  ]);
  expect([wanted, exitCode]).toEqual([null, 1]);
  expect(stderr).toContain('name a project with --for; the key has prj_1 (default), prj_2 (films)');
});
