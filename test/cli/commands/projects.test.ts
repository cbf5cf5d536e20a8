import { expect, it } from 'vitest';
import { runCapstan } from '../../../src/cli/program.ts';
import { serve } from '../support/http-server.ts';
import { aShell } from '../support/shell.ts';

interface Reply {
  readonly status?: number;
  readonly body: object;
}

/** Runs a command against an API that gives these answers, the last one again and again. */
async function capstan(words: readonly string[], ...replies: readonly Reply[]) {
  const asked: string[] = [];
  const url = await serve((request, response) => {
    const { status = 200, body } = replies[Math.min(asked.length, replies.length - 1)] ?? { body: {} };
    asked.push(`${request.method} ${request.url}`);
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  const { shell, seen } = aShell();
  await runCapstan([...words, '--url', url, '--key', 'k'], shell);
  return { ...seen, asked };
}

const project = {
  project_id: 'prj_1',
  name: 'films',
  timezone: 'UTC',
  daily_limit_usd: 0,
  strict: false,
  content_days: null,
  on_budget: null,
  created_at: '2026-01-09T00:00:00.000Z',
};
const none = { pseudonym: null, state: 'none', requested_at: null, finished_at: null, deleted: {}, left: {} };
const erasing = {
  ...none,
  pseudonym: 'ers_1',
  state: 'erasing',
  requested_at: '2026-01-09T00:00:00.000Z',
  left: { run: 100_000, open_run: 1 },
};
const erased = {
  ...erasing,
  state: 'erased',
  finished_at: '2026-01-09T00:00:30.000Z',
  deleted: { run: 12, step: 30, api_key: 1 },
  left: {},
};

it('lists the projects of the key, page by page', async () => {
  const { stdout, asked } = await capstan(
    ['projects'],
    { body: { items: [project], next_cursor: 'c' } },
    { body: { items: [{ ...project, project_id: 'prj_2' }], next_cursor: null } },
  );
  expect(asked).toEqual(['GET /v1/projects?limit=200', 'GET /v1/projects?limit=200&cursor=c']);
  expect(stdout).toMatch(
    /PROJECT +NAME +TIMEZONE +DAILY LIMIT +STRICT +CREATED\nprj_1 +films +UTC +none +no .*\nprj_2/,
  );
});

it('lists the objects to erase, and erases nothing, without --yes', async () => {
  const body = { ...none, left: { run: 2, open_run: 1, api_key: 1 } };
  const { stdout, stderr, asked, exitCode } = await capstan(['projects', 'erase', 'prj_1'], { body });
  expect([asked, exitCode]).toEqual([['GET /v1/projects/prj_1/erasure'], 1]);
  expect(stdout).toBe(
    'would be erased with prj_1:\n  2  runs\n  1  of them open\n  1  keys that hold it alone\n',
  );
  expect(stderr).toBe('error usage: erasing cannot be undone: add --yes to do it\n');
});

it.each([
  [erasing, /prj_1 is being erased since 2026/],
  [erased, /prj_1 is erased/],
])('reports without --yes that the erasure was already requested: $state', async (body, said) => {
  const { stdout, exitCode } = await capstan(['projects', 'erase', 'prj_1'], { body });
  expect([stdout, exitCode ?? 0]).toEqual([expect.stringMatching(said), 0]);
});

it('erases with --yes, and reports progress until the end', async () => {
  const replies = [{ status: 202, body: erasing }, { body: { ...erasing, left: {} } }, { body: erased }];
  const { stdout, stderr, asked, exitCode } = await capstan(
    ['projects', 'erase', 'prj_1', '--yes'],
    ...replies,
  );
  const look = 'GET /v1/projects/prj_1/erasure';
  expect([asked, exitCode]).toEqual([['DELETE /v1/projects/prj_1', look, look], 0]);
  expect(stderr).toBe('left: 100000+ runs, 1 of them open\nleft: the ledger and the audit log\n');
  expect(stdout).toBe(
    'prj_1 is erased; ledger and audit log call it ers_1\ndeleted:\n  12  runs\n  30  steps and items\n   1  keys that hold it alone\n',
  );
});

it('prints the last answer alone with --json', async () => {
  const { stdout, stderr } = await capstan(['projects', 'erase', 'prj_1', '--yes', '--json'], {
    body: erased,
  });
  expect([JSON.parse(stdout), stderr]).toEqual([erased, '']);
});

it.each([[[]], [['--yes']]])('an unknown id is a clear refusal with %j', async (rest) => {
  const problem = { type: 'x', title: 'x', status: 404, code: 'not_found', detail: 'no project prj_x' };
  const words = ['projects', 'erase', 'prj_x', ...rest];
  const { stderr, exitCode, asked } = await capstan(words, { status: 404, body: problem });
  expect([stderr, exitCode, asked.length]).toEqual(['error not_found: no project prj_x\n', 1, 1]);
});

it('sends an id with odd characters as one name', async () => {
  const { asked } = await capstan(['projects', 'erase', '../keys/k', '--yes'], { body: erased });
  expect(asked).toEqual(['DELETE /v1/projects/..%2Fkeys%2Fk']);
});
