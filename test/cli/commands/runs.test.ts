import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Alias } from '@capstan/core/contracts/pipeline-answers';
import type { Run } from '@capstan/core/contracts/run';
import type { BulkAnswer, RerunPreview } from '@capstan/core/contracts/run-control';
import type { RunStep, StepDetail } from '@capstan/core/contracts/run-step';
import { describe, expect, onTestFinished, test } from 'vitest';
import { runCapstan } from '../../../src/cli/program.ts';
import { serve } from '../support/http-server.ts';
import { aShell } from '../support/shell.ts';

const step: RunStep = {
  id: 'cut',
  state: 'succeeded',
  capability: 'x',
  attempts: 1,
  revision: 0,
  cost_usd: 0.5,
  started_at: '2026-01-01T00:00:00.000Z',
  finished_at: '2026-01-01T00:00:02.000Z',
};
const run: Run = {
  run_id: 'run_1',
  job_id: 'job_1',
  pipeline: 'p',
  version: '1',
  state: 'paused',
  priority: 'standard',
  budget_ceiling_usd: 2.5,
  cost_usd: 0.5,
  reserved_usd: 0,
  labels: {},
  finished_at: null,
  created_at: '2026-01-01T00:00:00.000Z',
  started_at: '2026-01-01T00:00:00.000Z',
  steps: [step],
  links: { self: '/v1/runs/run_1', events: '/v1/runs/run_1/events' },
};

/** Runs a command against an API that gives this answer. @param answer may depend on the path @returns what was printed and asked */
async function capstan(words: readonly string[], answer: object | ((path: string) => object), stdin = '') {
  const asked: string[] = [];
  const url = await serve(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const key = request.headers['idempotency-key'];
    asked.push([request.method, request.url, body, key].filter((part) => part).join(' '));
    response.end(JSON.stringify(typeof answer === 'function' ? answer(request.url ?? '') : answer));
  });
  const { shell, seen } = aShell({ stdin });
  await runCapstan([...words, '--url', url, '--key', 'k'], shell);
  return { ...seen, asked };
}

describe('what is done to a run', () => {
  test.each([
    [['pause', 'run_1'], 'POST /v1/runs/run_1/pause {}', '‖ paused  run_1\n'],
    [['resume', 'run_1'], 'POST /v1/runs/run_1/resume {}', '‖ paused  run_1\n'],
    [
      ['budget', 'run_1', '2.5'],
      'POST /v1/runs/run_1/budget {"budget_ceiling_usd":2.5}',
      'ceiling $2.50, spent $0.50  run_1\n',
    ],
    [
      ['budget', 'run_1', 'none'],
      'POST /v1/runs/run_1/budget {"budget_ceiling_usd":null}',
      'ceiling $2.50, spent $0.50  run_1\n',
    ],
  ])('%j', async (words, request, printed) => {
    const { asked, stdout } = await capstan(words, run);
    expect([asked, stdout]).toEqual([[request], printed]);
  });

  const call = (item: number) => ({
    step_id: 'render',
    ...(item === 0 ? {} : { item }),
    capability: 'gpu',
    endpoint: `http://gpu-${item}`,
    started_at: '2026-01-01T00:00:00.000Z',
  });
  test.each([
    [[], [], 2, ['no call is open', '2 steps wait for the resume']],
    [[0], [], 0, ['still finishes: render on http://gpu-0', '0 steps wait for the resume']],
    [
      [1, 2, 3, 4, 5, 6, 7],
      ['run_2'],
      1,
      [
        'still finishes: render item 1 on http://gpu-1, render item 2 on http://gpu-2, render item 3 on http://gpu-3, render item 4 on http://gpu-4, render item 5 on http://gpu-5 and 2 more',
        'child runs continue; pause each by itself: run_2',
        '1 step waits for the resume',
      ],
    ],
  ])(
    'pause shows the calls that still finish: items %j, child runs %j',
    async (items, children, held_steps, lines) => {
      const pause = {
        since: '2026-01-01T00:00:00.000Z',
        open_calls: items.map(call),
        open_call_count: items.length,
        open_child_runs: children,
        held_steps,
      };
      const { stdout } = await capstan(['pause', 'run_1'], { ...run, pause });
      expect(stdout).toBe(['‖ paused  run_1', ...lines, ''].join('\n'));
    },
  );

  test('a cancel is graceful unless --terminate is set', async () => {
    const graceful = await capstan(['cancel', 'run_1', '-r', 'enough'], run);
    expect(graceful.asked[0]).toBe('POST /v1/runs/run_1/cancel {"reason":"enough","mode":"graceful"}');
    const hard = await capstan(['cancel', 'run_1', '--terminate'], run);
    expect(hard.asked[0]).toBe('POST /v1/runs/run_1/cancel {"mode":"terminate"}');
  });

  test.each([
    [['budget', 'run_1', 'lots']],
    [['rerun', 'run_1', '--from', 'a,,b']],
    [['show', 'run_1', '--item', '1']],
  ])('refuses %j without asking', async (words) => {
    const { asked, exitCode } = await capstan(words, run);
    expect([asked, exitCode]).toEqual([[], 1]);
  });
});

test('a run names the file of its job that no option uploads', async () => {
  const job = { clip: 'media://job/typo.mp4', output_path: 'media://job/out.mp4' };
  const { stderr } = await capstan(['run', 'p', '--job', JSON.stringify(job)], run);
  expect(stderr).toContain('note: the job names media://job/typo.mp4, and no --file uploads it\n');
  expect(stderr).not.toContain('out.mp4');
});

test('runs are listed by a label', async () => {
  const { asked } = await capstan(['ls', '--label', 'batch=7 of 9'], { items: [], next_cursor: null });
  expect(asked).toEqual(['GET /v1/runs?label=batch%3D7+of+9&parent=none&limit=20']);
});

test.each(['--budget', '--ceiling'])(
  'a run, a call and a schedule take their ceiling by %s',
  async (name) => {
    const started = await capstan(['run', 'p', name, '0.5'], run);
    const ceiling = '"budget_ceiling_usd":0.5';
    expect(started.asked).toEqual([`POST /v1/runs {"pipeline":"p","job":{},${ceiling}}`]);
    const called = await capstan(['exec', 'x', name, '0.5'], {});
    expect(called.asked[0]).toContain(ceiling);
    const planned = await capstan(['schedules', 'add', 'n', 'p', '--cron', '@daily', name, '0.5'], {});
    expect(planned.asked[0]).toContain(ceiling);
  },
);

test('files of a job are listed', async () => {
  const artifacts = [
    { reference: 'media://job_1/out.mp4', size: 2_048, content_type: 'video/mp4', sha256: 'a'.repeat(64) },
  ];
  const job = {
    job_id: 'job_1',
    job: {},
    runs: [],
    artifacts,
    has_more_artifacts: false,
    created_at: run.created_at,
  };
  const { asked, stdout } = await capstan(['media', 'ls', 'job_1'], job);
  expect(asked).toEqual(['GET /v1/jobs/job_1']);
  expect(stdout).toContain('media://job_1/out.mp4');
  expect(stdout).toContain('video/mp4');
});

describe('a rerun', () => {
  test.each(['--budget', '--ceiling'])('takes another ceiling by %s', async (option) => {
    const { asked } = await capstan(['rerun', 'run_1', '--only-failed', option, '0.3'], run);
    expect(asked).toEqual(['POST /v1/runs/run_1/rerun {"only_failed":true,"budget_ceiling_usd":0.3}']);
  });

  test('shows how many results are kept', async () => {
    const again: Run = {
      ...run,
      steps: [
        { ...step, state: 'reused' },
        { ...step, id: 'send', state: 'pending' },
      ],
    };
    const words = ['rerun', 'run_1', '--from', 'send, mail', '--version', '2', '--idempotency-key', 'k1'];
    const { asked, stdout, stderr } = await capstan([...words, '--job', '{"n": 1}'], again);
    expect(asked).toEqual([
      'POST /v1/runs/run_1/rerun {"from":["send","mail"],"job":{"n":1},"version":"2"} k1',
    ]);
    expect([stdout, stderr.startsWith('1 of 2 results are kept')]).toEqual(['run_1\n', true]);
  });

  test('shows beforehand what would happen again, and why', async () => {
    const failed = 'it did not succeed before: failed';
    const kept = { reused: [], skipped: [] };
    const child = { pipeline: 'clip', version: '2', ...kept };
    const preview: RerunPreview = {
      reused: ['cut'],
      skipped: ['cover'],
      executed: [
        { id: 'clips', reason: failed, items: { all: 9, kept: 7, repeated: '3,8' } },
        { id: 'send', reason: 'it depends on clips, which happens again' },
      ],
      runs: [
        { ...child, run_id: 'run_2', place: 'clips/3', executed: [{ id: 'sub', reason: failed }] },
        {
          ...child,
          run_id: 'run_3',
          place: 'clips/3 › sub',
          executed: [{ id: 'mix', reason: failed }],
        },
      ],
      calls: { min: 1, max: 2 },
    };
    const { asked, stdout, stderr } = await capstan(
      ['rerun', 'run_1', '--only-failed', '--preview'],
      preview,
    );
    expect(asked).toEqual(['POST /v1/runs/run_1/rerun {"only_failed":true,"preview":true}']);
    const rows = stdout.split('\n').map((line) => line.split(/\s{2,}/));
    expect(rows.slice(1, -1)).toEqual([
      ['cut', '✓ kept'],
      ['cover', '– skipped'],
      ['clips', '● 2 of 9 items', `${failed}; items 3,8`],
      ['send', '● again', 'it depends on clips, which happens again'],
      ['clips/3 › sub', '● again', failed],
      ['clips/3 › sub › mix', '● again', failed],
    ]);
    expect(stderr).toBe('1 to 2 calls of capabilities\n');
  });

  test.each<[RerunPreview['calls'], string]>([
    [{ min: 7, max: 7 }, '7 calls of capabilities\n'],
    [{ min: 1, max: 1 }, '1 call of capabilities\n'],
    [{ min: 2, max: null }, 'at least 2 calls of capabilities\n'],
  ])('shows how many calls that takes: %j', async (calls, said) => {
    const preview = { reused: [], skipped: [], executed: [], runs: [], calls };
    expect((await capstan(['rerun', 'run_1', '--only-failed', '--preview'], preview)).stderr).toBe(said);
  });
});

test.each([
  ['step cut: HTTP 500: no disk', 1],
  ['not done within 1 h', 2],
])(
  'a failed run prints the error of its step once, and one of its own beside it: %s',
  async (message, errors) => {
    const error = { code: 'capability_failed', message: 'HTTP 500: no disk' };
    const failed = {
      ...run,
      state: 'failed',
      steps: [{ ...step, state: 'failed', error }],
      error: { code: 'e', message },
    };
    const { stdout } = await capstan(['show', 'run_1'], failed);
    const lines = stdout
      .split('\n')
      .filter((line) => /^ *(?:cut +capability_failed: HTTP 500: no disk|e: )/.test(line));
    expect(lines).toHaveLength(errors);
  },
);

test('a failed run names the retry of a wrong answer', async () => {
  const failed = (details: object) => {
    const error = { code: 'capability_refused', message: 'HTTP 422: no JSON', status: 422, details };
    return capstan(['show', 'run_1'], {
      ...run,
      state: 'failed',
      steps: [{ ...step, state: 'failed', error }],
    });
  };
  expect((await failed({ error_code: 'model_answer_invalid' })).stdout).toContain(
    'retry: {invalid_output: 2}',
  );
  expect((await failed({})).stdout).not.toContain('invalid_output');
});

describe('runs of a stored pipeline', () => {
  test('may be of an alias', async () => {
    const { asked } = await capstan(['run', 'p', '--alias', 'production'], { ...run, state: 'queued' });
    expect(asked).toEqual(['POST /v1/runs {"pipeline":"p","alias":"production","job":{}}']);
  });

  test('are started in bulk, a job per line, and refused jobs are listed', async () => {
    const answer: BulkAnswer = {
      items: [
        { status: 202, run_id: 'run_1' },
        {
          status: 422,
          error: {
            type: 't',
            title: 't',
            status: 422,
            detail: '/n is required',
            instance: '/',
            request_id: 'r',
            code: 'job_invalid',
          },
        },
      ],
    };
    const words = ['run', 'p', '--bulk', '-', '--priority', 'batch', '--idempotency-key', 'k'];
    const { asked, stdout, stderr, exitCode } = await capstan(words, answer, '{"n": 1}\n\n{}\n');
    expect(asked).toEqual([
      'POST /v1/runs/bulk {"runs":[{"pipeline":"p","priority":"batch","job":{"n":1}},{"pipeline":"p","priority":"batch","job":{}}]} k.0',
    ]);
    expect([stdout, exitCode]).toEqual(['run_1\n', 1]);
    expect(stderr).toBe('stdin, line 3: job_invalid: /n is required\n1 of 2 runs were started\n');
  });

  test.each([
    [['run', 'p', '--bulk', '-'], '0 of 2 runs were started; 2 were started before with this key'],
    [['run', 'p'], 'the run was started before with this key'],
    [['rerun', 'run_1'], 'the run was started before with this key'],
  ])('are not started again under the same key: %j', async (words, remark) => {
    const items = [1, 2].map((n) => ({ status: 202, run_id: `run_${n}` }));
    const url = await serve(async (request, response) => {
      for await (const _ of request);
      response.setHeader('idempotent-replayed', 'true');
      response.end(JSON.stringify(request.url === '/v1/runs/bulk' ? { items } : run));
    });
    const { shell, seen } = aShell({ stdin: '{"n": 1}\n{"n": 2}\n' });
    await runCapstan([...words, '--idempotency-key', 'k', '--url', url, '--key', 'k'], shell);
    expect(seen.stderr).toContain(remark);
  });

  test('in bulk take no files, and name the way to them', async () => {
    const { stderr, exitCode } = await capstan(
      ['run', 'p', '--bulk', '-', '--file', 'a.mp4=./a.mp4'],
      {},
      '{}',
    );
    expect(exitCode).toBe(1);
    expect(stderr).toContain('capstan media new FILES');
  });

  test('in bulk share one budget, and lines above a thousand join it', async () => {
    const jobs = Array.from({ length: 1_001 }, (_, n) => `{"n": ${n}}`).join('\n');
    const answer = { batch: 'bat_1', items: [{ status: 202, run_id: 'run_1' }] };
    const words = ['run', 'p', '--bulk', '-', '--budget-all', '5', '--label', 'team=ads'];
    const { asked, stderr } = await capstan(words, answer, jobs);
    expect(asked).toHaveLength(2);
    expect(asked[0]).toMatch(/"budget_all_usd":5\}$/);
    expect(asked[0]).not.toContain('batch');
    expect(asked[1]).toBe(
      'POST /v1/runs/bulk {"runs":[{"pipeline":"p","labels":{"team":"ads","batch":"bat_1"},"job":{"n":1000}}]}',
    );
    expect(stderr).toContain(
      'together they may cost 5 USD; to change it: capstan budgets put label:batch=bat_1 --period total --limit-usd USD',
    );
  });

  test.each([
    [['run', 'p', '--budget-all', '5'], '--budget-all goes with --bulk'],
    [['run', 'p', '--bulk', '-', '--budget-all', 'much'], 'budget-all'],
    [['run', 'p.yaml', '--mock', '--budget-all', '5'], '--budget-all needs a server'],
  ])('%j is refused', async (words, message) => {
    const { asked, stderr, exitCode } = await capstan(words, {}, '{}');
    expect([asked, exitCode]).toEqual([[], 1]);
    expect(stderr).toContain(message);
  });

  test('in bulk name the line that is no JSON and start the others, and take no file as the pipeline', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'capstan-bulk-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const jobs = join(folder, 'jobs.jsonl');
    await writeFile(jobs, '{}\n{"n":\n');
    const taken: BulkAnswer = { items: [{ status: 202, run_id: 'run_1' }] };
    const broken = await capstan(['run', 'p', '--bulk', jobs], taken);
    expect(broken.asked).toEqual(['POST /v1/runs/bulk {"runs":[{"pipeline":"p","job":{}}]}']);
    expect([broken.stdout, broken.exitCode]).toEqual(['run_1\n', 1]);
    expect(broken.stderr).toMatch(/jobs\.jsonl, line 2: .+\n1 of 2 runs were started\n$/);
    await writeFile(jobs, '{"n":\n');
    const all = await capstan(['run', 'p', '--bulk', jobs], {});
    expect([all.asked, all.exitCode, all.stderr.includes('line 1')]).toEqual([[], 1, true]);
    const file = await capstan(['run', 'p.yaml', '--bulk', jobs], {});
    expect([file.asked, file.exitCode]).toEqual([[], 1]);
  });
});

describe('aliases of a pipeline', () => {
  const alias: Alias = { alias: 'production', version: '1.4', updated_at: '2026-01-01T00:00:00.000Z' };

  test('are set and listed', async () => {
    const set = await capstan(['pipelines', 'alias', 'set', 'p', 'production', '1.4'], alias);
    expect(set.asked).toEqual(['PUT /v1/pipelines/p/aliases/production {"version":"1.4"}']);
    expect(set.stdout).toBe('p@production is 1.4\n');
    const listed = await capstan(['pipelines', 'alias', 'ls', 'p'], { items: [alias] });
    expect(listed.asked).toEqual(['GET /v1/pipelines/p/aliases']);
    expect(listed.stdout.split('\n')[1]).toMatch(/^production {2}1\.4 /);
  });
});

test.each([
  [{ missing_key: 'k1' }, 'Add this key for every server and worker.', 'temporal workflow reset'],
  [{}, 'temporal workflow reset -w p/run_1', 'Add this key'],
])('a run whose workflow cannot make progress, with %j, names its remedy', async (more, said, unsaid) => {
  const stalled = { message: 'no task succeeds', since: '2026-01-01T00:00:00.000Z', ...more };
  const { stdout } = await capstan(['show', 'run_1'], { ...run, stalled });
  expect(stdout).toContain('since 2026-01-01T00:00:00.000Z: no task succeeds');
  expect(stdout).toContain(said);
  expect(stdout).not.toContain(unsaid);
});

test('a run names the key that started it, and the person who cancelled it with the reason', async () => {
  const { stdout } = await capstan(['show', 'run_1'], {
    ...run,
    state: 'cancelled',
    started_by: { id: 'key_1', name: 'nightly' },
    cancel: {
      by: { id: 'user:anna@example.org' },
      reason: 'wrong clip',
      mode: 'graceful',
      requested_at: run.created_at,
    },
  });
  expect(stdout).toContain('started by nightly (key_1)\n');
  expect(stdout).toContain('cancel asked for by user:anna@example.org: wrong clip\n');
});

test('an item of a step has a page of its own, and a step shows the reason for which it waits', async () => {
  const detail: StepDetail = {
    ...step,
    item: 3,
    state: 'waiting',
    awaiting: 'budget',
    review_id: 'rev_1',
    run_id: 'run_1',
    depends_on: [],
    attempts: [],
  };
  const { asked, stdout } = await capstan(['show', 'run_1', '--step', 'cut', '--item', '3'], detail);
  expect(asked).toEqual(['GET /v1/runs/run_1/steps/cut?item=3']);
  expect(stdout.split('\n').slice(0, 2)).toEqual([
    'cut[3]  ◔ waiting (budget)  x  2.0s  $0.50',
    'review rev_1',
  ]);
});

test('the list shows the progress of runs, and why they do not move', async () => {
  const { steps: _steps, links: _links, ...fields } = run;
  const waiting = {
    ...fields,
    state: 'running',
    awaiting: ['budget'],
    step_counts: { succeeded: 1, waiting: 1 },
  };
  const follows = { escalation_id: 'esc_1', run_id: 'run_0' };
  const following = { ...fields, run_id: 'run_2', state: 'running', step_counts: { retrying: 1 }, follows };
  const { stdout } = await capstan(['ls'], { items: [waiting, following], next_cursor: null });
  expect(stdout).toMatch(/run_1 +p@1 +◔ Waiting for budget +1\/2/);
  expect(stdout).toMatch(/run_2 +p@1 +◔ Waiting for another run: run_0 works on the same failure +0\/1/);
});

test('a run whose items failed does not look like one that succeeded, in the list and by itself', async () => {
  const { steps: _steps, links: _links, ...fields } = run;
  const partly = {
    ...fields,
    state: 'succeeded',
    step_counts: { succeeded: 1, skipped: 1, failed: 1 },
    item_counts: { succeeded: 191, failed: 9 },
  };
  const listed = await capstan(['ls'], { items: [partly], next_cursor: null });
  expect(listed.stdout).toMatch(
    /! Succeeded with failures: 1 optional step failed; 9 of 200 items failed +1\/3/,
  );
  const items = { succeeded: 191, failed: 9 };
  const shown = await capstan(['show', 'run_1'], { ...run, state: 'succeeded', steps: [{ ...step, items }] });
  expect(shown.stdout).toMatch(/^! Succeeded with failures: 9 of 200 items failed in cut {2}p@1/);
});

describe('the log of a run', () => {
  const at = '2026-01-01T10:57:27.120Z';
  const of = { run_id: 'run_1', at, step_id: 'cut', item: 2, attempt: 1 } as const;
  const endpoint = 'http://127.0.0.1:8100';
  const logged = (seq: number, level: string, message: string) => {
    return { ...of, seq, type: 'step.log', data: { level, message, endpoint } };
  };
  const items = [
    { ...of, seq: 1, type: 'step.routed', data: { endpoint } },
    logged(2, 'debug', 'opens'),
    logged(3, 'warn', 'slow disk'),
    logged(4, 'error', 'no sound\n  at join'),
    { ...logged(5, 'error', 'elsewhere'), step_id: 'mix' },
  ];
  const page = { items, next_cursor: null };

  test('holds what capabilities logged, a line each', async () => {
    const { stdout } = await capstan(['events', 'run_1'], page);
    expect(stdout.split('\n')[3]).toBe(
      `10:57:27.120Z  step.log        cut[2] #1  error  no sound ↵ at join  ${endpoint}`,
    );
    expect(stdout.split('\n')).toHaveLength(6);
  });

  test.each([
    [
      ['--level', 'warn'],
      [3, 4, 5],
    ],
    [
      ['--level', 'debug', '--step', 'cut'],
      [2, 3, 4],
    ],
    [['--step', 'mix'], [5]],
  ])('of %j has only these lines', async (words, seqs) => {
    const { stdout } = await capstan(['events', 'run_1', ...words, '--json'], page);
    expect(JSON.parse(stdout).items.map(({ seq }: { seq: number }) => seq)).toEqual(seqs);
  });

  test('knows no other level', async () => {
    const { exitCode, asked } = await capstan(['events', 'run_1', '--level', 'loud'], page);
    expect([exitCode === 0, asked]).toEqual([false, []]);
  });
});

test('a search continues behind pages without a match', async () => {
  const asked: string[] = [];
  const { steps: _, links: __, ...fields } = run;
  const pages: Record<string, object> = {
    '': { items: [], next_cursor: 'two' },
    two: { items: [], next_cursor: 'three' },
    three: { items: [{ ...fields, step_counts: { succeeded: 1 } }], next_cursor: null },
  };
  const url = await serve((request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://x');
    asked.push(`${searchParams.get('q')} ${searchParams.get('cursor') ?? ''}`);
    response.end(JSON.stringify(pages[searchParams.get('cursor') ?? '']));
  });
  const { shell, seen } = aShell();
  await runCapstan(['ls', '--search', 'no such file', '--url', url, '--key', 'k'], shell);
  expect(asked).toEqual(['no such file ', 'no such file two', 'no such file three']);
  expect([seen.exitCode, seen.stdout]).toEqual([0, expect.stringContaining('run_1')]);
});

test('the job of a run is printed as JSON', async () => {
  const created_at = '2026-01-01T00:00:00.000Z';
  const job = {
    job_id: 'job_1',
    job: { title: '夜' },
    runs: [],
    artifacts: [],
    has_more_artifacts: false,
    created_at,
  };
  const { asked, stdout } = await capstan(['show', 'run_1', '--job'], (path) =>
    path === '/v1/jobs/job_1' ? job : run,
  );
  expect(asked).toEqual(['GET /v1/runs/run_1', 'GET /v1/jobs/job_1']);
  expect(stdout).toBe('{"title":"夜"}\n');
});
