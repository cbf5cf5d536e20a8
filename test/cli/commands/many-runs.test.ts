import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runCapstan } from '../../../src/cli/program.ts';
import { serve } from '../support/http-server.ts';
import { aShell } from '../support/shell.ts';

/** Runs a command against an API that gives these answers, one after the other; the last one stays. */
async function capstan(words: readonly string[], answers: readonly (object | string)[], stdin = '') {
  const asked: string[] = [];
  let next = 0;
  const url = await serve(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const key = request.headers['idempotency-key'];
    asked.push([request.method, request.url, body, key].filter((part) => part).join(' '));
    const answer = answers[Math.min(next++, answers.length - 1)];
    response.end(typeof answer === 'string' ? answer : JSON.stringify(answer));
  });
  const { shell, seen } = aShell({ stdin });
  await runCapstan([...words, '--url', url, '--key', 'k'], shell);
  return { ...seen, asked };
}

const error = {
  type: 't',
  title: 't',
  status: 409,
  code: 'state_conflict',
  detail: 'it has ended',
  instance: '/',
  request_id: 'r',
};

const summary = {
  run_id: 'run_1',
  job_id: 'job_1',
  pipeline: 'p',
  version: '1',
  state: 'failed',
  priority: 'standard',
  budget_ceiling_usd: null,
  cost_usd: 0,
  reserved_usd: 0,
  labels: {},
  finished_at: null,
  started_at: null,
  created_at: '2026-01-01T00:00:00.000Z',
  step_counts: { failed: 1 },
  item_counts: {},
};

describe('runs that filters choose', () => {
  test('are counted by state', async () => {
    const counted = { count: 12, by_state: { succeeded: 10, failed: 2 } };
    const { asked, stdout, stderr } = await capstan(
      ['count', '-l', 'batch=7', '--since', '2026-01-01'],
      [counted],
    );
    expect(asked).toEqual([
      'GET /v1/runs/count?label=batch%3D7&since=2026-01-01T00%3A00%3A00.000Z&parent=none',
    ]);
    expect(stdout).toMatch(/succeeded +10\n.*failed +2\n/);
    expect(stderr).toBe('12 runs\n');
  });

  test.each([
    ['ls', { items: [], next_cursor: null }, '/v1/runs?pipeline=p&state=cancelled&limit=20'],
    ['count', { count: 0, by_state: {} }, '/v1/runs/count?pipeline=p&state=cancelled'],
    ['export', '', '/v1/runs/export?pipeline=p&state=cancelled'],
  ])(
    'are the same for %s as for the others: child runs are among them only if asked for',
    async (name, answer, to) => {
      const words = [name, '-p', 'p', '--state', 'cancelled'];
      const asked = async (more: string[]) => {
        const [request = ''] = (await capstan([...words, ...more], [answer])).asked;
        return new URL(request.slice(4), 'http://x').searchParams;
      };
      const expected = new URL(to, 'http://x').searchParams;
      expect([...(await asked(['--child-runs']))].toSorted()).toEqual([...expected].toSorted());
      expect((await asked([])).get('parent')).toBe('none');
    },
  );

  test('by a text are counted page by page', async () => {
    const pages = [
      { items: [summary, { ...summary, run_id: 'run_2', state: 'succeeded' }], next_cursor: 'c' },
      { items: [{ ...summary, run_id: 'run_3' }], next_cursor: null },
    ];
    const { asked, stdout, stderr } = await capstan(['rerun', '--search', 'cut', '--preview'], pages);
    const query = 'q=cut&superseded=none&parent=none&limit=200';
    expect(asked).toEqual([`GET /v1/runs?${query}`, `GET /v1/runs?${query}&cursor=c`]);
    expect(stdout).toMatch(/failed +2\n.*succeeded +1\n/);
    expect(stderr).toBe('3 runs\n');
  });

  test('are listed from as many pages as it takes, and no more', async () => {
    const page = (ids: string[], next_cursor: string | null) => ({
      items: ids.map((run_id) => ({ ...summary, run_id })),
      next_cursor,
    });
    const pages = [page(['run_1', 'run_2'], 'c'), page([], 'd'), page(['run_3'], 'e')];
    const seen = await capstan(['ls', '-n', '3', '--search', 'cut'], pages);
    const pageOf = (limit: number, cursor: string): string =>
      `GET /v1/runs?q=cut&parent=none&limit=${limit}${cursor}`;
    expect(seen.asked).toEqual([pageOf(3, ''), pageOf(1, '&cursor=c'), pageOf(1, '&cursor=d')]);
    expect(seen.stdout.split('\n').slice(1, -1)).toHaveLength(3);
    expect(seen.stderr).toBe('the newest 3; there are more\n');
    expect((await capstan(['ls', '-n', '500'], [page(['run_1'], null)])).asked[0]).toContain('limit=200');
    expect((await capstan(['ls', '-n', '10001'], [])).stderr).toContain('from 1 to 10000');
  });

  test('that another run repeats show it in the list', async () => {
    const items = [
      { ...summary, superseded_by: 'run_01k9zzzzzzzz4f' },
      { ...summary, run_id: 'run_2' },
    ];
    const { stdout } = await capstan(['ls'], [{ items, next_cursor: null }]);
    const [, first = '', second = ''] = stdout.split('\n');
    expect(first).toContain('repeated as …zzzzzz4f');
    expect(second).not.toContain('repeated');
  });

  test.each(['1h30m', 'PT1H30M', '1 h 30 min'])('are those of the last %s', async (since) => {
    const before = Date.now();
    const { asked } = await capstan(['count', '--since', since], [{ count: 0, by_state: {} }]);
    const from = Date.parse(new URL(`x:${asked[0]?.slice(4)}`).searchParams.get('since') ?? '');
    expect([from >= before - 5_400_000, from <= Date.now() - 5_400_000]).toEqual([true, true]);
  });

  test('are cancelled over all pages, and each that is refused is named', async () => {
    const pages = [
      { items: [{ status: 202, run_id: 'run_2' }], next_cursor: 'c' },
      { items: [{ status: 409, run_id: 'run_1', error }], next_cursor: null },
    ];
    const seen = await capstan(['cancel', '--label', 'batch=7', '-r', 'wrong'], pages);
    expect(seen.asked).toEqual([
      'POST /v1/runs/bulk/cancel?limit=100&label=batch%3D7 {"reason":"wrong","mode":"graceful"}',
      'POST /v1/runs/bulk/cancel?limit=100&label=batch%3D7&cursor=c {"reason":"wrong","mode":"graceful"}',
    ]);
    expect(seen.stdout).toBe('run_2\n');
    expect(seen.stderr).toBe('run_1: state_conflict: it has ended\n1 of 2 runs were cancelled\n');
    expect(seen.exitCode).toBe(1);
  });

  test('run again with a higher ceiling, once for a key', async () => {
    const page = { items: [{ status: 202, run_id: 'run_1', new_run_id: 'run_9' }], next_cursor: null };
    const words = [
      'rerun',
      '--state',
      'failed',
      '--only-failed',
      '--budget',
      '2.5',
      '--idempotency-key',
      'k1',
    ];
    const seen = await capstan(words, [page]);
    expect(seen.asked).toEqual([
      'POST /v1/runs/bulk/rerun?limit=100&state=failed {"only_failed":true,"budget_ceiling_usd":2.5} k1',
    ]);
    expect([seen.stdout, seen.exitCode]).toEqual(['run_1 → run_9\n', 0]);
    expect(seen.stderr).toBe('1 of 1 runs were started again with this key, now or before\n');
  });

  test.each([
    [[], 'superseded=none'],
    [['--superseded', 'any'], 'superseded=any'],
  ])('are counted beforehand as they would run again: %j', async (words, filter) => {
    const { asked } = await capstan(
      ['rerun', '--state', 'failed', ...words, '--preview'],
      [{ count: 0, by_state: {} }],
    );
    expect(asked).toEqual([`GET /v1/runs/count?state=failed&${filter}&parent=none`]);
  });

  test('are raised together', async () => {
    const page = { items: [{ status: 202, run_id: 'run_1', new_run_id: 'run_9' }], next_cursor: null };
    const words = ['raise', '--label', 'batch=7', '--state', 'running', '--budget', '2.5'];
    const seen = await capstan([...words, '--idempotency-key', 'k1'], [page]);
    expect(seen.asked).toEqual([
      'POST /v1/runs/bulk/raise?limit=100&state=running&label=batch%3D7 {"budget_ceiling_usd":2.5} k1',
    ]);
    expect([seen.stdout, seen.stderr]).toEqual([
      'run_1 → run_9\n',
      '1 of 1 runs were raised with this key, now or before\n',
    ]);
  });

  test('are exported to a file, a run a line', async () => {
    const file = join(tmpdir(), `runs-${process.pid}.jsonl`);
    const seen = await capstan(['export', '--pipeline', 'p', '-o', file], ['{"run_id":"run_1"}\n']);
    expect(seen.asked).toEqual(['GET /v1/runs/export?pipeline=p&parent=none']);
    expect(await readFile(file, 'utf8')).toBe('{"run_id":"run_1"}\n');
  });

  test.each([
    [['cancel', 'run_1', '--label', 'a=b'], 'give a run or filters, not both: run_1 is one run'],
    [['cancel', '--preview'], '--preview counts runs; give a filter such as --label'],
    [['cancel', '--label', 'a=b', '--wait'], '--wait is for one run'],
    [['raise', '--budget', '2'], 'choose runs by a filter such as --label'],
    [['raise', '--label', 'a=b'], '--budget'],
    [['rerun'], 'name a run, or choose runs by a filter such as --label'],
    [['rerun', '--superseded', 'any'], 'name a run, or choose runs by a filter such as --label'],
    [['rerun', '--state', 'failed', '--from', 'cut'], '--from names steps of one run'],
    [
      ['count', '--since', 'soon'],
      'Write a duration such as 2h (ago), a day such as 2026-01-31, or a moment',
    ],
  ])('%j is refused before anything is asked', async (words, said) => {
    const { asked, stderr, exitCode } = await capstan(words, [{}]);
    expect([asked, exitCode]).toEqual([[], 1]);
    expect(stderr).toContain(said);
  });
});

describe('run --bulk --watch', () => {
  test.each([
    [{ succeeded: 2 }, 0],
    [{ succeeded: 1, failed: 1 }, 1],
    [{ succeeded: 1, cancelled: 1 }, 3],
  ])('ends with %j and exit code %i', async (by_state, code) => {
    const started = {
      items: [
        { status: 202, run_id: 'run_1' },
        { status: 202, run_id: 'run_2' },
      ],
    };
    const answers = [started, { count: 2, by_state: { running: 2 } }, { count: 2, by_state }];
    const words = ['run', 'p', '--bulk', '-', '--watch', '--idempotency-key', 'seven'];
    const seen = await capstan(words, answers, '{"n": 1}\n{"n": 2}\n');
    expect(seen.asked[0]).toContain('"labels":{"bulk":"seven"}');
    expect(seen.asked.slice(1)).toEqual(
      Array.from({ length: 2 }, () => 'GET /v1/runs/count?label=bulk%3Dseven&parent=none'),
    );
    expect(seen.stderr).toContain('2 runs: 2 running\n2 runs: ');
    expect(seen.exitCode).toBe(code);
  });
});
