import type { Schedule } from '@capstan/core/contracts/schedule';
import { expect, it } from 'vitest';
import { formatTime } from '../../../src/cli/commands/schedules.ts';
import { runCapstan } from '../../../src/cli/program.ts';
import { serve } from '../support/http-server.ts';
import { aShell } from '../support/shell.ts';

/** Runs a command against an API that gives these answers, in turn. @returns what was printed and asked */
async function capstan(words: readonly string[], ...answers: readonly object[]) {
  const asked: unknown[] = [];
  const url = await serve(async (request, response) => {
    const answer = answers[asked.length] ?? {};
    const chunks: Buffer[] = [];
    asked.push(`${request.method} ${request.url}`);
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (chunks.length > 0) asked.push(JSON.parse(Buffer.concat(chunks).toString()));
    response.end(JSON.stringify(answer));
  });
  const { shell, seen } = aShell();
  await runCapstan(['schedules', ...words, '--url', url, '--key', 'k'], shell);
  return { ...seen, asked };
}

const schedule: Schedule = {
  schedule_id: 'sch_1',
  name: 'nightly',
  pipeline: 'trailer',
  alias: 'stable',
  cron: '30 4 * * mon-fri',
  timezone: 'Europe/Berlin',
  job: { n: 1 },
  labels: { team: 'film' },
  overlap: 'skip',
  catch_up: '1m',
  paused: false,
  delivered: true,
  next_at: ['2026-03-27T03:30:00.000Z', '2026-03-30T02:30:00.000Z'],
  last_start: null,
  skipped: null,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
};
const { alias: _, ...latest } = schedule;
const last_start = {
  scheduled_at: '2026-03-26T03:30:00.000Z',
  run_id: 'run_1',
  state: 'failed',
  error: { code: 'job_invalid', message: 'n is no number' },
} as const;
const paused: Schedule = {
  ...latest,
  schedule_id: 'sch_2',
  name: 'weekly',
  paused: true,
  next_at: [],
  last_start,
};

it('lists all pages with the next start of each, in its own zone', async () => {
  const { stdout, asked } = await capstan(
    ['ls'],
    { items: [schedule], next_cursor: 'x' },
    { items: [paused], next_cursor: null },
  );
  expect(asked).toEqual(['GET /v1/schedules?limit=200', 'GET /v1/schedules?limit=200&cursor=x']);
  expect(stdout.split('\n')).toEqual([
    'SCHEDULE  NAME     PIPELINE        CRON              ZONE           STATE   LAST    NEXT',
    'sch_1     nightly  trailer@stable  30 4 * * mon-fri  Europe/Berlin  active          2026-03-27 04:30 +01:00',
    'sch_2     weekly   trailer@latest  30 4 * * mon-fri  Europe/Berlin  paused  failed',
    '',
  ]);
  expect((await capstan([], { items: [], next_cursor: null })).stderr).toBe('no schedules\n');
});

it('sends what was given, and nothing else', async () => {
  const words = ['add', 'nightly', 'trailer', '--cron', '30 4 * * mon-fri', '--timezone', 'Europe/Berlin'];
  const more = ['--alias', 'stable', '--job', '{"n": 1}', '--overlap', 'buffer_one', '--label', 'team=film'];
  const { stdout, stderr, asked } = await capstan([...words, ...more, '--budget', '0.5'], schedule);
  expect(asked).toEqual([
    'POST /v1/schedules',
    {
      name: 'nightly',
      pipeline: 'trailer',
      alias: 'stable',
      cron: '30 4 * * mon-fri',
      timezone: 'Europe/Berlin',
      job: { n: 1 },
      overlap: 'buffer_one',
      labels: { team: 'film' },
      budget_ceiling_usd: 0.5,
    },
  ]);
  expect(stdout).toBe('sch_1\n');
  expect(stderr).toBe('nightly: next at 2026-03-27 04:30 +01:00\n');
  const late = await capstan([...words.slice(0, 5)], { ...schedule, delivered: false, next_at: [] });
  expect(late.stderr).toBe('nightly: waits for Temporal\n');
});

it('replaces the one of its name, which stays paused', async () => {
  const words = ['add', 'weekly', 'trailer', '--cron', '0 5 * * *', '--replace'];
  const body = { name: 'weekly', pipeline: 'trailer', cron: '0 5 * * *', job: {} };
  const list = { items: [schedule, paused], next_cursor: null };
  const { stderr, asked } = await capstan(words, list, paused);
  expect(asked).toEqual([
    'GET /v1/schedules?limit=200',
    'PUT /v1/schedules/sch_2',
    { ...body, paused: true },
  ]);
  expect(stderr).toBe('weekly: paused\n');
  const added = await capstan(words, { items: [schedule], next_cursor: null }, latest);
  expect(added.asked).toEqual(['GET /v1/schedules?limit=200', 'POST /v1/schedules', body]);
});

it('shows one by its name, with starts before and after the clocks change', async () => {
  const { stdout, asked } = await capstan(
    ['show', 'nightly'],
    { items: [paused, schedule], next_cursor: null },
    schedule,
  );
  expect(asked).toEqual(['GET /v1/schedules?limit=200', 'GET /v1/schedules/sch_1']);
  expect(stdout.split('\n')).toEqual([
    'nightly  sch_1  active',
    'starts trailer@stable at "30 4 * * mon-fri" in Europe/Berlin',
    'overlap skip, catch-up 1m',
    'labels team=film',
    'job {"n":1}',
    'next',
    ...['  2026-03-27 04:30 +01:00', '  2026-03-30 04:30 +02:00', ''],
  ]);
});

it('shows the last start with its reason, how many were skipped, and a pause in Temporal', async () => {
  const skipped = { count: 3, scheduled_at: '2026-03-25T03:30:00.000Z', reason: 'run run_0 is still open' };
  const shown = { ...schedule, last_start, skipped, next_at: [], paused_in_temporal: 'the disk is full' };
  const { stdout } = await capstan(['show', 'sch_1'], shown);
  const lines = stdout.split('\n');
  expect(lines[0]).toBe('nightly  sch_1  paused in Temporal');
  expect(lines).toContain('paused in Temporal: the disk is full');
  expect(lines).toContain('last start 2026-03-26 04:30 +01:00  run_1  failed  job_invalid: n is no number');
  expect(lines).toContain('skipped 3, the latest 2026-03-25 04:30 +01:00: run run_0 is still open');
});

it('names the run that a trigger has started', async () => {
  const started = { ...schedule, last_start: { ...last_start, state: 'queued', error: null } };
  expect((await capstan(['trigger', 'sch_1'], started)).stderr).toBe('run_1\n');
});

it.each([
  [['pause', 'sch_1'], 'POST /v1/schedules/sch_1/pause', 'paused nightly\n'],
  [['resume', 'sch_1'], 'POST /v1/schedules/sch_1/resume', 'resumed nightly\n'],
  [['trigger', 'sch_1'], 'POST /v1/schedules/sch_1/trigger', 'triggered nightly\n'],
  [['rm', 'sch_1'], 'DELETE /v1/schedules/sch_1', 'removed sch_1\n'],
])('%j asks %s', async (words, request, printed) => {
  const { stdout, asked } = await capstan(words, schedule);
  expect([asked[0], stdout]).toEqual([request, printed]);
});

it('names the unknown schedule', async () => {
  const { stderr, exitCode } = await capstan(['rm', 'nightli'], { items: [schedule], next_cursor: null });
  expect([stderr, exitCode]).toEqual(['error usage: there is no schedule named nightli\n', 1]);
});

it.each([[['add', 'nightly', 'trailer']], [['add', 'n', 'p', '-c', '@daily', '--overlap', 'x']], [['show']]])(
  'refuses %j without asking',
  async (words) => {
    const { asked, exitCode } = await capstan(words);
    expect([asked, exitCode]).toEqual([[], 1]);
  },
);

it('writes times in UTC too', () => {
  expect(formatTime('2026-01-01T00:05:00Z', 'UTC')).toBe('2026-01-01 00:05 +00:00');
});
