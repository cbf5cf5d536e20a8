import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import type { Decision, DecisionDetail } from '@capstan/core/contracts/decision';
import { expect, onTestFinished, test } from 'vitest';
import { runCapstan } from '../../../src/cli/program.ts';
import { serve } from '../support/http-server.ts';
import { aShell } from '../support/shell.ts';

const decision: Decision = {
  decision_id: 'dec_1',
  chosen: 'http://a.test',
  reason: 'http://a.test is free, local and idle',
  candidates: [
    { endpoint: 'http://a.test', tier: 0, cost_usd: 0, wait_ms: 1_200, score: 0.00123456, verdict: 'chosen' },
    { endpoint: 'http://b.test', tier: null, cost_usd: null, wait_ms: null, score: null, verdict: 'down' },
  ],
  reserved_usd: 0.02,
  settled_usd: 0.01,
};

const table = [
  'why: http://a.test is free, local and idle',
  'CANDIDATE      TIER  COST  WAIT    SCORE  VERDICT',
  'http://a.test     0    $0  1.2s  0.00123  chosen',
  'http://b.test                             down',
];

function detail(replay: DecisionDetail['replay']): DecisionDetail {
  return {
    ...decision,
    at: '2026-01-01T00:00:00Z',
    capability: 'concat',
    attempt_id: 'att_1',
    run_id: 'run_1',
    step_id: 'join',
    outcome: 'succeeded',
    inputs: {},
    replay,
  };
}

interface Seen {
  readonly url: string | undefined;
  readonly key: string | undefined;
  readonly body: unknown;
}

/** Runs a command against an API that gives this answer. */
async function capstan(words: readonly string[], answer: object, stdin = '') {
  const asked: Seen[] = [];
  const note = async (request: IncomingMessage): Promise<void> => {
    const body = request.method === 'POST' ? await json(request) : undefined;
    asked.push({ url: request.url, key: request.headers['idempotency-key'] as string | undefined, body });
  };
  const url = await serve(async (request, response) => {
    await note(request);
    response.end(JSON.stringify(answer));
  });
  const { shell, seen } = aShell({ stdin });
  await runCapstan([...words, '--url', url, '--key', 'k'], shell);
  return { ...seen, asked };
}

const executed = { ok: true, output: { path: 'media://job/out.mp4' }, routing: decision };

test('exec sends its options and keeps the output apart from the words about routing', async () => {
  const { stdout, stderr, exitCode, asked } = await capstan(
    [
      ...['exec', 'concat', '--input', '{"n": 1}', '--priority', 'batch', '--ceiling', '0.05'],
      ...[
        '--version',
        '^1.2',
        '--tag',
        'gpu',
        '--tag',
        'eu',
        '--timeout',
        '10m',
        '--idempotency-key',
        'once',
      ],
    ],
    executed,
  );
  expect(asked).toEqual([
    {
      url: '/v1/capabilities/concat/exec',
      key: 'once',
      body: {
        input: { n: 1 },
        priority: 'batch',
        budget_ceiling_usd: 0.05,
        version: '^1.2',
        tags: ['gpu', 'eu'],
        timeout_ms: 600_000,
      },
    },
  ]);
  expect(JSON.parse(stdout)).toEqual(executed.output);
  expect(stderr).toBe(
    'http://a.test is free, local and idle; reserved $0.02, settled $0.01; capstan route explain dec_1\n',
  );
  expect(exitCode).toBe(0);
});

test('exec reads its input from a file or from stdin, and refuses what is no object', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'capstan-exec-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'input.yaml');
  await writeFile(file, 'n: 2\n');
  const fromFile = await capstan(['exec', 'concat', '-i', `@${file}`], executed);
  const fromStdin = await capstan(['exec', 'concat', '-i', '-'], executed, '{"n": 3}');
  expect([fromFile.asked[0]?.body, fromStdin.asked[0]?.body]).toEqual([
    { input: { n: 2 } },
    { input: { n: 3 } },
  ]);
  const refused = await capstan(['exec', 'concat', '-i', '[1]'], executed);
  expect([refused.exitCode, refused.stderr, refused.asked]).toEqual([
    1,
    'error usage: the input must be a JSON object\n',
    [],
  ]);
});

test('exec reads YAML as a definition is read, and names the place of what it refuses', async () => {
  const merged = await capstan(['exec', 'concat', '-i', '-'], executed, 'a: &a {n: 1}\nb:\n  <<: *a\n');
  const twice = await capstan(['exec', 'concat', '-i', '-'], executed, 'n: 1\nn: 2\n');
  expect([merged.asked, twice.asked]).toEqual([[], []]);
  expect(merged.stderr).toContain('stdin:3:3: merge keys (<<) are not supported');
  expect(twice.stderr).toContain('stdin:2:1: the key "n" is written twice');
});

test('route shows who would be chosen and who else was considered', async () => {
  const { stdout, asked } = await capstan(['route', 'concat', '--input', '{}'], decision);
  expect(asked).toMatchObject([{ url: '/v1/route', body: { capability: 'concat', input: {} } }]);
  expect(stdout.split('\n')).toEqual(['http://a.test', ...table, '']);
});

test.each([
  [{ chosen: 'http://a.test', same: true }, 'made again from what was known then: the same'],
  [
    { chosen: 'http://b.test', same: false },
    'made again from what was known then: http://b.test, not http://a.test',
  ],
  [{ chosen: null, same: false }, 'cannot be made again: what was known then was not kept'],
])('route explain shows a stored decision, its money, and whether it holds: %j', async (replay, line) => {
  const { stdout, asked } = await capstan(['route', 'explain', 'dec_1'], detail(replay));
  expect(asked).toMatchObject([{ url: '/v1/decisions/dec_1' }]);
  expect(stdout.split('\n')).toEqual([
    'concat  http://a.test  run run_1  step join  2026-01-01T00:00:00Z',
    ...table,
    'reserved $0.02, settled $0.01',
    line,
    '',
  ]);
});

test.each([
  [['exec', 'concat'], executed],
  [['route', 'concat'], decision],
  [['route', 'explain', 'dec_1'], detail({ chosen: null, same: false })],
])('%j prints the answer as it came with --json', async (words, answer) => {
  const { stdout, stderr } = await capstan([...words, '--json'], answer);
  expect([stdout, stderr]).toEqual([`${JSON.stringify(answer)}\n`, '']);
});
