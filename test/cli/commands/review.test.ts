import type { Review, ReviewSummary } from '@capstan/core/contracts/review';
import { expect, it } from 'vitest';
import { runCapstan } from '../../../src/cli/program.ts';
import { serve } from '../support/http-server.ts';
import { aShell } from '../support/shell.ts';

const review: Review = {
  review_id: 'rev_1',
  kind: 'escalation',
  reason: 'the rate is no number',
  state: 'open',
  run_id: 'run_1',
  step_id: 'resample',
  escalation_id: 'esc_1',
  version: 3,
  round: 2,
  due_at: '2026-01-02T00:00:00.000Z',
  created_at: '2026-01-01T00:00:00.000Z',
  payload: {
    job_type: 'resample',
    error: 'rate must be number\nat line 1',
    input: { rate: '44.1k', tags: ['a'], 'a/b': 1 },
    validation_errors: [{ pointer: '/rate', message: 'must be number, got "44.1k"' }],
    proposals: [
      {
        source: 'repair',
        note: 'a number with a unit',
        input: { rate: 44_100, tags: ['a'] },
        patch: [
          { op: 'test', path: '/rate', value: '44.1k' },
          { op: 'replace', path: '/rate', value: 44_100 },
          { op: 'remove', path: '/a~1b' },
          { op: 'add', path: '/tags/-', value: 'b' },
          { op: 'move', from: '/tags', path: '/labels' },
        ],
      },
    ],
    history: [{ level: 0, label: 'static template', attempted_at: 1_767_225_600, error: 'rate\nmore' }],
    advice: [
      { from_level: 1, label: 'fast model', instructions: 'write hertz', suggested_executor_level: 0 },
    ],
  },
  actions: ['approve', 'edit', 'reject'],
};
const listed: ReviewSummary = { ...review, payload: { job_type: 'resample' } };
const decided: Review = { ...review, state: 'resolved', version: 4, decision: { action: 'reject' } };

/** Runs a command against an API with this one review. @returns what was printed and asked */
async function capstan(words: readonly string[], { conflict = false, shown = review } = {}) {
  const asked: string[] = [];
  const url = await serve(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const match = request.headers['if-match'];
    const parts = [`${request.method} ${request.url}`, match ?? [], body === '' ? [] : body].flat();
    asked.push(parts.join(' '));
    if (conflict && request.method === 'POST') {
      const detail = 'review rev_1 was decided by key_2 at T: reject';
      response.writeHead(409).end(JSON.stringify({ code: 'state_conflict', detail }));
      return;
    }
    const isList = request.url?.startsWith('/v1/reviews?');
    const one = request.url?.endsWith('/decision') ? decided : shown;
    response.end(JSON.stringify(isList ? { items: [listed], next_cursor: null } : one));
  });
  const { shell, seen } = aShell();
  await runCapstan(['review', ...words, '--url', url, '--key', 'k'], shell);
  return { ...seen, asked };
}

it('lists the waiting reviews', async () => {
  const { stdout, asked } = await capstan(['ls', '--kind', 'escalation', '--overdue']);
  expect(asked).toEqual(['GET /v1/reviews?kind=escalation&state=open&overdue=true']);
  expect(stdout).toBe(
    [
      'REVIEW  STATE   KIND        ABOUT           DUE            WHY',
      'rev_1   ◍ open  escalation  run_1 resample  due in 23h59m  the rate is no number\n',
    ].join('\n'),
  );
});

it('shows what failed, what is wrong with it, each proposal as a difference, and what was tried', async () => {
  const { stdout } = await capstan(['show', 'rev_1']);
  expect(stdout).toBe(
    [
      'rev_1  ◍ open  escalation  due in 23h59m  version 3  round 2',
      'the rate is no number',
      'about run_1 resample',
      'capstan show run_1 --step resample',
      'error',
      '  rate must be number',
      '  at line 1',
      'input',
      ...JSON.stringify(review.payload.input, null, 2)
        .split('\n')
        .map((line) => `  ${line}`),
      'findings',
      '  /rate must be number, got "44.1k"',
      'proposals',
      '  0  repair: a number with a unit',
      '     - /rate "44.1k"',
      '     + /rate 44100',
      '     - /a~1b 1',
      '     + /tags/- "b"',
      '     - /tags ["a"]',
      '     + /labels ["a"]',
      'history',
      '  2026-01-01T00:00:00.000Z  level 0 static template: rate',
      'advice',
      '  level 1 fast model: write hertz (suggests level 0)',
      'takes approve, edit, reject\n',
    ].join('\n'),
  );
});

it.each([
  ['escalation', 'schema of the input'],
  ['step', 'schema of the answer'],
] as const)('shows the field of each schema of a review of kind %s: %s', async (kind, heading) => {
  const payload = { ...review.payload, schema: { type: 'object' } };
  const { stdout } = await capstan(['show', 'rev_1'], { shown: { ...review, kind, payload } });
  expect(stdout).toContain(`\n${heading}\n  {\n`);
});

function decision(body: object) {
  return `POST /v1/reviews/rev_1/decision "3" ${JSON.stringify(body)}`;
}

it.each([
  [['approve', 'rev_1', '-p', '0'], { action: 'approve', proposal: 0 }],
  [
    ['edit', 'rev_1', '--set', '/rate=44100', '--set', '/tags/-=b', '--remove', '/a~1b', '--no-remember'],
    { action: 'edit', input: { rate: 44_100, tags: ['a', 'b'] }, remember: false },
  ],
  [
    ['edit', 'rev_1', '--input', '{"rate": 1}', '--note', 'as asked'],
    { action: 'edit', note: 'as asked', input: { rate: 1 } },
  ],
  [
    ['advise', 'rev_1', '--say', 'use hertz', '-l', '2'],
    { action: 'advise', instructions: 'use hertz', level: 2 },
  ],
  [['retry', 'rev_1'], { action: 'retry' }],
  [['skip', 'rev_1'], { action: 'skip' }],
  [['reject', 'rev_1', '--note', 'no'], { action: 'reject', note: 'no' }],
  [
    ['decide', 'rev_1', '-d', '{"action": "raise", "budget_ceiling_usd": 2}'],
    { action: 'raise', budget_ceiling_usd: 2 },
  ],
])('decides by %j on the version that it read', async (words, body) => {
  const { asked, stdout, exitCode } = await capstan(words);
  expect(asked).toEqual(['GET /v1/reviews/rev_1', decision(body)]);
  expect([stdout, exitCode]).toEqual(['✓ resolved  rev_1  reject\n', 0]);
});

it('decides on the newest that waits, and only at the version that was seen', async () => {
  const { asked } = await capstan(['reject', '@latest', '--if-version', '2']);
  expect(asked).toEqual([
    'GET /v1/reviews?state=open&limit=1',
    'GET /v1/reviews/rev_1',
    'POST /v1/reviews/rev_1/decision "2" {"action":"reject"}',
  ]);
});

it('names the person who was faster, and fails', async () => {
  const { stderr, exitCode } = await capstan(['retry', 'rev_1'], { conflict: true });
  expect([stderr, exitCode]).toEqual([
    'error state_conflict: review rev_1 was decided by key_2 at T: reject\n',
    1,
  ]);
});

it.each([
  [['edit', 'rev_1']],
  [['reject']],
  [['edit', 'rev_1', '--set', '/tags/7=x']],
  [['edit', 'rev_1', '--set', 'rate=1']],
  [['edit', 'rev_1', '--remove', '/nothing']],
  [['advise', 'rev_1']],
  [['approve', 'rev_1', '-p', 'one']],
])('does not send %j', async (words) => {
  const { asked, exitCode } = await capstan(words);
  expect(asked.filter((line) => line.startsWith('POST'))).toEqual([]);
  expect(exitCode).toBe(1);
});
