import type {
  Budget,
  CostSeries,
  CostSummary,
  LedgerEntry,
  ScopedBudget,
} from '@capstan/core/contracts/money';
import { expect, it } from 'vitest';
import { capstan } from '../support/capstan.ts';

const costs: CostSummary = {
  today_spend_usd: 1.25,
  today_saved_usd: 0.25,
  daily_limit_usd: 5,
  reserved_usd: 0.5,
  spend_usd: 12.5,
  forecast_usd: 40,
  period: 'month',
  from: '2026-01-01',
  to: '2026-01-09',
  timezone: 'Europe/Berlin',
  by_capability: [
    { capability: 'model.fast', spend_usd: 12.4988 },
    { capability: 'concat', spend_usd: 0.0012 },
  ],
};

it('shows today against the limit, the period, and each capability', async () => {
  const { stdout, asked } = await capstan(['costs', '--period', 'month'], costs);
  expect(asked).toEqual(['GET /v1/costs?period=month']);
  expect(stdout).toBe(
    [
      'today $1.25, $0.50 reserved  limit $5.00  saved today $0.25',
      'month $12.50  2026-01-01 to 2026-01-09, Europe/Berlin  at this rate $40.00 at its end',
      'CAPABILITY    SPENT',
      'model.fast   $12.50',
      'concat      $0.0012\n',
    ].join('\n'),
  );
});

it('shows that there is no limit, and no figure of today twice', async () => {
  const nothing = { today_spend_usd: 0, today_saved_usd: 0, reserved_usd: 0, spend_usd: 0 };
  const free = { ...nothing, daily_limit_usd: 0, by_capability: [] };
  const answer = { ...costs, ...free, period: 'day', from: '2026-01-09' };
  const { stdout, asked } = await capstan(['costs'], answer);
  expect([asked, stdout]).toEqual([['GET /v1/costs?period=day'], 'today $0  no limit\n']);
});

const series: CostSeries = {
  from: '2026-01-01',
  to: '2026-01-09',
  timezone: 'UTC',
  bucket: 'day',
  starts: [],
  until: '2026-01-10T00:00:00.000Z',
  usd: 3.75,
  calls: 1_203,
  tokens: 1_500_000,
  series: [
    { name: 'key_1', title: 'ads', and: 'model.fast', usd: 3.5, calls: 1_200, tokens: 1_500_000, points: [] },
    { name: '', and: 'concat', usd: 0.25, calls: 3, tokens: 0, points: [] },
  ],
  daily_limit_usd: 0,
};

it('shows the sums of any days by two groups, with calls and tokens', async () => {
  const days = ['--from', '2026-01-01', '--to', '2026-01-09'];
  const words = ['costs', ...days, '--by', 'key', '--and', 'capability', '--only', 'label=team=ads'];
  const { stdout, asked } = await capstan(words, series);
  expect(asked).toEqual([
    'GET /v1/costs/series?from=2026-01-01&to=2026-01-09&by=key&and=capability&label=team%3Dads',
  ]);
  expect(stdout).toBe(
    [
      'KEY  CAPABILITY  CALLS   TOKENS  SPENT',
      'ads  model.fast   1200  1500000  $3.50',
      '-    concat          3        0  $0.25',
      'sum               1203  1500000  $3.75\n',
    ].join('\n'),
  );
});

it('writes the sums by day as CSV', async () => {
  const csv = 'from,until,key,key_name,usd,calls,tokens\r\n';
  const { stdout, asked } = await capstan(['costs', '--period', 'yesterday', '--by', 'key', '--csv'], csv);
  expect([stdout, asked]).toEqual([csv, ['GET /v1/costs/series?period=yesterday&by=key&format=csv']]);
});

const entry: LedgerEntry = {
  entry_id: '7',
  at: '2026-01-09T00:00:01.000Z',
  attempt_id: 'att_1',
  kind: 'adjust',
  amount_usd: -0.25,
  certainty: 'exact',
  window: '2026-01-08',
  capability: 'concat',
  endpoint: 'http://a.test',
  run_id: 'run_1',
  step_id: 'a',
};

it('lists the ledger with its filters and shows that there is more', async () => {
  const filters = ['--since', '2026-01-01', '--until', '2026-01-08', '--kind', 'adjust', '--run', 'run_1'];
  const page = { items: [entry], next_cursor: 'x' };
  const seen = await capstan(['ledger', ...filters, '-n', '1'], page);
  expect(seen.asked).toEqual([
    'GET /v1/ledger?since=2026-01-01&until=2026-01-08&kind=adjust&run_id=run_1&limit=1',
  ]);
  expect(seen.stdout.split('\n')[1]).toBe(
    '2026-01-09T00:00:01.000Z  2026-01-08  adjust  -$0.25  concat      run_1  a',
  );
  expect(seen.stderr).toBe('the newest 1; --csv prints all\n');
});

it('writes the CSV as it comes', async () => {
  const csv = 'entry_id,at\r\n7,"a,b"\r\n';
  const { stdout, asked } = await capstan(['ledger', '--csv', '--capability', 'concat'], csv);
  expect([stdout, asked]).toEqual([csv, ['GET /v1/ledger?capability=concat&format=csv']]);
});

const budget: Budget = {
  scope: 'project',
  window: '2026-01-09',
  timezone: 'UTC',
  daily_limit_usd: 5,
  spent_usd: 4,
  reserved_usd: 0,
  resets_at: '2026-01-10T00:00:00.000Z',
  forecast: { spend_usd: 6, limit_at: '2026-01-09T18:00:00.000Z' },
  reached: [
    { percent: 50, at: '2026-01-09T01:00:00.000Z' },
    { percent: 80, at: '2026-01-09T02:00:00.000Z' },
  ],
};

it('shows budgets, and one without a limit as none', async () => {
  const global: Budget = { ...budget, scope: 'global', daily_limit_usd: 0, forecast: null, reached: [] };
  const { stdout, asked } = await capstan(['budgets'], { items: [budget, global] });
  expect(asked).toEqual(['GET /v1/budgets']);
  expect(stdout).toBe(
    [
      'SCOPE    DAY         LIMIT  SPENT  RESERVED  REACHED  RESETS AT                 AT THIS RATE',
      'project  2026-01-09  $5.00  $4.00        $0      80%  2026-01-10T00:00:00.000Z  $6.00, limit at 2026-01-09T18:00:00.000Z',
      'global   2026-01-09   none  $4.00        $0           2026-01-10T00:00:00.000Z\n',
    ].join('\n'),
  );
});

it('sets a limit and shows the new budget', async () => {
  const words = ['budgets', 'set', '--scope', 'project', '--daily-limit-usd', '5'];
  const { stdout, asked } = await capstan([...words, '--json'], budget);
  expect(asked).toEqual(['PUT /v1/budgets {"scope":"project","daily_limit_usd":5}']);
  expect(JSON.parse(stdout)).toEqual(budget);
});

const scoped: ScopedBudget = {
  scope: 'label:team=ads',
  period: 'month',
  limit_usd: 5,
  soft: 0.7,
  window: '2026-01-01',
  timezone: 'UTC',
  spent_usd: 4,
  reserved_usd: 0.5,
  resets_at: '2026-02-01T00:00:00.000Z',
  forecast: null,
  reached: [{ percent: 70, at: '2026-01-09T01:00:00.000Z' }],
};

it('shows the budgets of labels and keys', async () => {
  const { stdout, asked } = await capstan(['budgets', 'scoped'], { items: [scoped] });
  expect(asked).toEqual(['GET /v1/budgets/scoped']);
  expect(stdout).toBe(
    [
      'SCOPE           PERIOD  LIMIT  SPENT  RESERVED  REACHED  RESETS AT',
      'label:team=ads  month   $5.00  $4.00     $0.50      70%  2026-02-01T00:00:00.000Z\n',
    ].join('\n'),
  );
});

it('shows a budget by total, which never resets', async () => {
  const forecast = { spend_usd: null, limit_at: '2026-02-03T01:00:00.000Z' };
  const total = { ...scoped, period: 'total', window: null, resets_at: null, forecast } as const;
  const { stdout } = await capstan(['budgets', 'scoped'], { items: [total] });
  expect(stdout).toMatch(/label:team=ads {2}total .* never {2,}limit at 2026-02-03T01:00:00.000Z\n$/);
  const { asked, stderr } = await capstan(['budgets', 'rm', 'user:a', '--period', 'total'], '');
  expect(asked).toEqual(['DELETE /v1/budgets/scoped/user%3Aa?period=total']);
  expect(stderr).toBe('removed the budget of user:a in total\n');
});

it('sets and removes the budget of a label', async () => {
  const words = [
    'budgets',
    'put',
    'label:team=ads',
    '--limit-usd',
    '5',
    '--period',
    'month',
    '--soft',
    '0.7',
  ];
  expect((await capstan(words, scoped)).asked).toEqual([
    'PUT /v1/budgets/scoped/label%3Ateam%3Dads {"limit_usd":5,"period":"month","soft":0.7}',
  ]);
  const { stderr, asked } = await capstan(['budgets', 'rm', 'user:anna'], '');
  expect(asked).toEqual(['DELETE /v1/budgets/scoped/user%3Aanna?period=day']);
  expect(stderr).toBe('removed the budget of user:anna by day\n');
  const erased = await capstan(['budgets', 'erase-user', 'a/b'], { calls: 1, pseudonym: 'ers_1' });
  expect([erased.asked, erased.stderr]).toEqual([['DELETE /v1/users/a%2Fb'], 'erased a/b\n']);
});

it.each([
  [['budgets', 'put', 'key:k']],
  [['budgets', 'put', 'key:k', '--limit-usd', '1', '--soft', '80']],
  [['budgets', 'set', '--daily-limit-usd', '-1']],
  [['budgets', 'set']],
  [['costs', '--period', 'year']],
  [['ledger', '--kind', 'gift']],
])('refuses %j without asking', async (words) => {
  const { asked, exitCode } = await capstan(words, {});
  expect([asked, exitCode]).toEqual([[], 1]);
});
