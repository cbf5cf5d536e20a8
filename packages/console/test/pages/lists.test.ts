/** That lists are true about runs, and that a search finds its object in them. */
import { readFile } from 'node:fs/promises';
import type { Key } from '@capstan/core/contracts/access';
import type { CapabilitySummary } from '@capstan/core/contracts/capability';
import type { RunsHealth } from '@capstan/core/contracts/health';
import type { CostSeries, ScopedBudget } from '@capstan/core/contracts/money';
import type { PipelineSummary } from '@capstan/core/contracts/pipeline-answers';
import type { Review } from '@capstan/core/contracts/review';
import type { Run } from '@capstan/core/contracts/run';
import type { BulkAnswer } from '@capstan/core/contracts/run-control';
import type { Schedule } from '@capstan/core/contracts/schedule';
import type { Skill } from '@capstan/core/contracts/skill';
import { formatUsd } from '@capstan/core/money/nano-usd';
import { expect, test } from 'vitest';
import { isLong } from '../../../../test/support/long.ts';
import { useStudio } from '../support/studio.ts';

const visitors = useStudio();

const job = { clips: ['a'], title: 'Labelled', rate: 44_100 };

/** @returns its id */
async function startWith(ticket: string): Promise<string> {
  const { capstan } = visitors.studio;
  const request = { pipeline: 'reel', job, labels: { ticket } };
  const { body } = await capstan.request<Run>('POST', '/v1/runs', request);
  return body.run_id;
}

/** Two of four items are refused, which the step tolerates. */
async function startPartly(): Promise<string> {
  const { capstan } = visitors.studio;
  const { run_id } = await capstan.submit([
    {
      id: 'rates',
      capability: 'resample',
      for_each: { items: [1, 'x', 2, 'y'], tolerate: 2 },
      input: { rate: '{{ item }}' },
      escalate: { enabled: false },
    },
  ]);
  await capstan.ended(run_id);
  return run_id;
}

test('a run whose items failed and one that was cancelled do not look as if all had succeeded', async () => {
  const { capstan } = visitors.studio;
  const partly = await startPartly();
  const { run_id: stopped } = await capstan.submit([{ id: 'night', wait: '1d' }]);
  await capstan.request('POST', `/v1/runs/${stopped}/cancel`, {});
  await capstan.ended(stopped);
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go('/runs');
  const row = (id: string) => page.getByRole('row').filter({ has: page.getByTitle(id) });
  await row(partly).getByText('Succeeded with failures').waitFor();
  await row(partly).getByText('2 of 4 items failed').waitFor();
  await row(stopped).getByText('Cancelled').first().waitFor();
  await row(stopped).getByTitle('0 of 1 steps succeeded').waitFor();
  opened.expectQuiet();
  await opened.close();
});

test('a failed run that was repeated names the new one, and a filter leaves it out', async () => {
  const { capstan, failed } = visitors.studio;
  const { run_id: old } = await capstan.submit([
    { id: 'a', capability: 'resample', input: { rate: 'x' }, escalate: { enabled: false } },
  ]);
  await capstan.ended(old);
  const { body: next } = await capstan.request<Run>('POST', `/v1/runs/${old}/rerun`, {});
  await capstan.ended(next.run_id);
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go('/runs?state=failed');
  const row = page.getByRole('row').filter({ has: page.getByTitle(old, { exact: true }) });
  await row.getByRole('link', { name: `Repeated as …${next.run_id.slice(-8)}` }).waitFor();
  await page.getByLabel('Repeated').selectOption('not repeated yet');
  await row.waitFor({ state: 'detached' });
  await page.getByTitle(next.run_id).first().waitFor();
  await page.getByTitle(failed).first().waitFor();
  await page.getByLabel('Repeated').selectOption('repeated by another run');
  await row.waitFor();
  opened.expectQuiet();
  await opened.close();
});

test('runs are found while a label is typed as it is shown, by a pipeline, and again by a saved view', async () => {
  const { capstan, done, failed } = visitors.studio;
  const id = await startWith('OPS-4711');
  await capstan.ended(id);
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go('/runs');
  await page.getByTitle(failed).waitFor();
  await page.getByRole('group').filter({ hasText: 'Columns' }).click();
  await page.getByLabel('Labels', { exact: true }).check();
  await page.getByLabel('Trigger').check();
  await page.getByRole('columnheader', { name: 'Trigger' }).waitFor();
  await page.getByLabel('Search runs by pipeline, id, label or error').pressSequentially('ticket=OPS-4711');
  await page.getByTitle(done).waitFor({ state: 'detached' });
  await page.getByTitle(id).waitFor();
  await page.getByRole('group').filter({ hasText: 'Views' }).click();
  await page.getByLabel('Name of the view').fill('my ticket');
  await page.getByRole('button', { name: 'Save' }).click();
  await opened.go('/runs');
  await page.getByRole('columnheader', { name: 'Labels' }).waitFor();
  await page.getByLabel('Pipeline', { exact: true }).selectOption('reel');
  await page.getByTitle(failed).waitFor({ state: 'detached' });
  await page.getByTitle(done).waitFor();
  await page.getByRole('group').filter({ hasText: 'Views' }).click();
  await page.getByRole('link', { name: 'my ticket' }).click();
  await page.getByTitle(done).waitFor({ state: 'detached' });
  await page.getByTitle(id).waitFor();
  expect(new URL(page.url()).searchParams.get('q')).toBe('ticket=OPS-4711');
  await page.getByRole('row').getByRole('link', { name: 'ticket=OPS-4711' }).click();
  await page.waitForURL((at) => at.searchParams.get('label') === 'ticket=OPS-4711');
  opened.expectQuiet();
  await opened.close();
});

test('all runs that match are counted, exported and cancelled together, over every page', async () => {
  const { capstan } = visitors.studio;
  const definition = { pipeline: 'night', version: '1', steps: [{ id: 'night', wait: '1d' }] };
  const runs = Array.from({ length: 3 }, () => ({ definition, job: {}, labels: { batch: 'all-of-them' } }));
  const { body } = await capstan.request<BulkAnswer>('POST', '/v1/runs/bulk', { runs });
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go('/runs?label=batch%3Dall-of-them');
  await page.getByRole('button', { name: 'All that match …' }).click();
  const bar = page.getByRole('status').filter({ hasText: 'that match' });
  await bar.getByText('3 runs that match').waitFor();
  const [saved] = await Promise.all([
    page.waitForEvent('download'),
    bar.getByRole('button', { name: 'Export' }).click(),
  ]);
  const lines = (await readFile(await saved.path(), 'utf8')).trim().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as Run).steps.length)).toEqual([1, 1, 1]);
  await bar.getByRole('button', { name: 'Cancel …' }).click();
  await page.getByRole('button', { name: 'Cancel 3 runs' }).click();
  await page.getByText('3 done').waitFor();
  for (const { run_id } of body.items) expect((await capstan.ended(run_id ?? '')).state).toBe('cancelled');
  opened.expectQuiet();
  await opened.close();
});

test.runIf(isLong)(
  'Ctrl-K finds a run by its label, cancels it after its dialog, and starts a pipeline',
  async () => {
    const { capstan } = visitors.studio;
    const definition = { pipeline: 'night', version: '1', steps: [{ id: 'night', wait: '1d' }] };
    const request = { definition, job: {}, labels: { ticket: 'OPS-4712' } };
    const { run_id: id } = (await capstan.request<Run>('POST', '/v1/runs', request)).body;
    const opened = await visitors.visit();
    const { page } = opened;
    await opened.go('/');
    await page.keyboard.press('Control+k');
    const field = page.getByRole('combobox', { name: 'Search pages, ids and actions' });
    await field.fill('OPS-4712');
    await page.getByRole('option', { name: id }).waitFor();
    await page.getByRole('option', { name: /^Cancel …/ }).click();
    await page.getByLabel('Reason (optional)').fill('not needed');
    await page.getByRole('button', { name: 'Cancel the run' }).click();
    expect((await capstan.ended(id)).state).toBe('cancelled');
    await page.keyboard.press('Control+k');
    await field.fill('Run reel');
    await page.getByRole('option', { name: 'Run reel …' }).click();
    await page.getByRole('button', { name: 'Start run' }).waitFor();
    opened.expectQuiet();
    await opened.close();
  },
);

test('Home shows failed runs and those that are open the longest, and its runs fit', async () => {
  const { capstan } = visitors.studio;
  const pipeline = 'a-pipeline-with-a-name-that-is-much-too-long-for-a-table';
  const input = { rate: `x${' and on and on'.repeat(40)}` };
  const steps = [{ id: 'one', capability: 'resample', input, escalate: { enabled: false } }];
  const { run_id: failed } = await capstan.submit(steps, {}, { pipeline });
  await capstan.ended(failed);
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go('/');
  const lately = page.getByRole('list', { name: 'Failed in the last 24 h' });
  await lately.getByTitle(failed).waitFor();
  await page
    .getByRole('list', { name: 'Open the longest' })
    .getByText('Waiting for review')
    .first()
    .waitFor();
  await page.getByRole('link', { name: /run …/ }).filter({ hasText: 'reel' }).first().waitFor();
  const pipelines = page.getByRole('list', { name: 'Health of pipelines' });
  await pipelines.getByText('next start').first().waitFor();
  const health = await pipelines.innerText();
  expect(health).toMatch(/reel[\s\S]*of \d+ runs?[\s\S]*next start/);
  const body = await capstan.read<RunsHealth>('/v1/runs/health?last=10');
  const marks = body.items.find((item) => item.pipeline === 'reel')?.last ?? [];
  const group = page.getByRole('group', { name: /^Last runs of reel: / });
  expect(await group.getByRole('link').count()).toBe(marks.length);
  for (const width of [1280, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    const table = page.getByRole('region', { name: 'Runs' });
    await table.getByRole('columnheader', { name: 'Started' }).waitFor();
    expect(
      await table.evaluate(
        (box: unknown) =>
          (box as Record<'scrollWidth', number>).scrollWidth -
          (box as Record<'clientWidth', number>).clientWidth,
      ),
    ).toBe(0);
  }
  // New failures appear by themselves while a person looks.
  const later = (await capstan.submit(steps)).run_id;
  await lately.getByTitle(later).waitFor();
  opened.expectQuiet();
  await opened.close();
});

test('a schedule is made with everything the API takes, after a look at its next times, and shows its runs', async () => {
  const { capstan } = visitors.studio;
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go('/schedules');
  await page.getByRole('button', { name: 'New schedule' }).click();
  await page.getByLabel('Name').fill('leap-day');
  const cron = page.getByLabel('Cron: minute, hour, day, month, weekday');
  await cron.fill('0 25 * * *');
  await page.getByText('hour holds "25"; allowed is 0 to 23').waitFor();
  await cron.fill('0 9 29 2 *');
  await page.getByLabel('Time zone').fill('UTC');
  await page.getByText(/^Starts 29 Feb 2028, 09:00, 29 Feb 2032, 09:00/).waitFor();
  await page.getByRole('dialog').getByRole('combobox', { name: 'Pipeline' }).selectOption('reel');
  await page.getByLabel('Version at each start').selectOption('version 1.0');
  await page.getByLabel('While the last run is still going on').selectOption('buffer_one');
  await page.getByLabel('Make up for missed starts of the last').fill('2h');
  await page.getByLabel('Budget of each run, USD').fill('0.5');
  await page.getByRole('button', { name: 'Create' }).click();
  const card = page.locator('section', { has: page.getByRole('heading', { name: 'leap-day' }) });
  await card.getByText('It has started no run yet.').waitFor();
  const body = await capstan.read<{ items: Schedule[] }>('/v1/schedules');
  const made = body.items.find(({ name }) => name === 'leap-day');
  expect(made).toMatchObject({
    version: '1.0',
    overlap: 'buffer_one',
    catch_up: '2h',
    budget_ceiling_usd: 0.5,
    cron: '0 9 29 2 *',
  });
  await capstan.request('POST', `/v1/schedules/${made?.schedule_id}/trigger`);
  const last = card.getByRole('list', { name: 'Last runs' }).getByRole('link').first();
  await last.getByText(/^planned for .+, started/).waitFor();
  opened.expectQuiet();
  await opened.close();
});

test('the fleet is a table, and a key is made of scopes that describe their rights', async () => {
  const { capstan } = visitors.studio;
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go('/capabilities');
  const row = page
    .getByRole('row')
    .filter({ has: page.getByRole('link', { name: 'resample', exact: true }) });
  await row.getByText('1 of 1').waitFor();
  await row.getByText(/\d+ of \d+ calls? succeeded/).waitFor();
  await row.getByText('rate must be a whole number').waitFor();
  await row.getByRole('group', { name: /^Last calls of resample: .*failed/ }).waitFor();
  await opened.walk('/settings?tab=access');
  await page.getByRole('textbox', { name: 'Name' }).fill('reader');
  await page.getByLabel('Requests a minute').fill('60');
  await page.getByLabel('Expires').fill('2099-01-31');
  await page.getByLabel('run:write').uncheck();
  await page.getByLabel('cost:read').check();
  await page.getByRole('button', { name: 'Create key' }).click();
  await page.getByText('you will not see it again').waitFor();
  const body = await capstan.read<{ items: Key[] }>('/v1/keys?limit=200');
  const made = body.items.find(({ name }) => name === 'reader');
  expect(made?.scopes.toSorted()).toEqual(['cost:read', 'pipeline:read', 'run:read']);
  expect(made).toMatchObject({ requests_per_minute: 60, tokens_per_minute: null });
  expect(made?.expires_at).toMatch(/^2099-01-3/);
  const reader = page.getByRole('row', { name: /reader/ });
  await reader.getByText('60 requests a minute').waitFor();
  await reader.getByText('none in 30 days').waitFor();
  const first = await page.getByRole('status').locator('code').textContent();
  await reader.getByRole('button', { name: 'Rotate reader' }).click();
  await page.getByRole('button', { name: 'Rotate the key' }).click();
  await expect.poll(() => page.getByRole('status').locator('code').textContent()).not.toBe(first);
  await opened.walk('/settings?tab=limits');
  await page.getByText('Steps of a pipeline').waitFor();
  expect(await page.getByText('2147483648').count()).toBe(0);
  await opened.walk('/costs?period=last_7_days');
  await page.getByText('daily limit $2.00').waitFor();
  opened.expectQuiet();
  await opened.close();
});

/** The numbers of a row, as the API has them and as the page words them. */
type Numbers = readonly string[];

interface ComparedPage {
  readonly path: string;
  /** A row, by CSS. */
  readonly row: string;
  readonly numbers: () => Promise<readonly Numbers[]>;
}

async function itemsOf<Item>(path: string): Promise<readonly Item[]> {
  const body = await visitors.studio.capstan.read<{ items: Item[] } | Item[]>(path);
  return Array.isArray(body) ? body : body.items;
}

const inMain = 'main tbody tr';

const compared: Readonly<Record<string, ComparedPage>> = {
  runs: {
    path: '/runs',
    row: inMain,
    numbers: async () =>
      (await itemsOf<Run>('/v1/runs?limit=50&parent=none')).map(({ run_id, pipeline, cost_usd }) => [
        ...[pipeline, run_id.slice(-8), formatUsd(cost_usd)],
      ]),
  },
  pipelines: {
    path: '/pipelines',
    row: inMain,
    numbers: async () => {
      const health = await itemsOf<RunsHealth['items'][number]>('/v1/runs/health?last=10');
      return (await itemsOf<PipelineSummary>('/v1/pipelines?limit=200')).map((one) => {
        const { ended = 0, succeeded = 0 } = health.find(({ pipeline }) => pipeline === one.pipeline) ?? {};
        const share = ended === 0 ? 'no runs' : `${succeeded} of ${ended} run`;
        return [one.pipeline, `${one.latest_version}, ${one.steps} step`, share];
      });
    },
  },
  instances: {
    path: '/capabilities',
    row: inMain,
    numbers: async () =>
      (await itemsOf<CapabilitySummary>('/v1/capabilities?limit=200')).map(({ name, instances }) => [
        ...[name, `${instances.filter(({ state }) => state === 'up').length} of ${instances.length}`],
      ]),
  },
  keys: {
    path: '/settings',
    row: inMain,
    numbers: async () => {
      const path = '/v1/costs/series?period=last_30_days&by=key&bucket=day';
      const body = await visitors.studio.capstan.read<CostSeries>(path);
      return (await itemsOf<Key>('/v1/keys?limit=200')).map(({ key_id, name }) => [
        ...[name, formatUsd(body.series.find((one) => one.name === key_id)?.usd ?? 0)],
      ]);
    },
  },
  budgets: {
    path: '/costs',
    row: 'tr:has(button:text-is("Remove"))',
    numbers: async () =>
      (await itemsOf<ScopedBudget>('/v1/budgets/scoped')).map(({ scope, period, limit_usd, spent_usd }) => [
        ...[scope, `${formatUsd(spent_usd)} of ${formatUsd(limit_usd)} a ${period}`],
      ]),
  },
  schedules: {
    path: '/schedules',
    row: 'main section:has(button[aria-label^="Delete"])',
    numbers: async () =>
      (await itemsOf<Schedule>('/v1/schedules?limit=200')).map(({ name, cron, timezone, pipeline }) => [
        ...[name, cron, timezone, pipeline],
      ]),
  },
  reviews: {
    path: '/reviews',
    row: inMain,
    numbers: async () =>
      (await itemsOf<Review>('/v1/reviews?state=open&limit=200')).map(({ run_id = '' }) => [
        run_id.slice(-8),
      ]),
  },
  skills: {
    path: '/skills',
    row: inMain,
    numbers: async () =>
      (await itemsOf<Skill>('/skills')).map(({ pattern, uses, instructions }) => [
        ...[pattern.job_type, instructions, String(uses)],
      ]),
  },
};

async function fillLists(): Promise<void> {
  const { capstan } = visitors.studio;
  const steps = [{ id: 'a', capability: 'join', input: { part: '{{ job.part }}' } }];
  const runs = Array.from({ length: 50 }, (_, part) => ({
    definition: { pipeline: 'counted', version: '1', steps },
    job: { part },
    labels: { of: 'fifty' },
  }));
  const { body } = await capstan.request<BulkAnswer>('POST', '/v1/runs/bulk', { runs });
  await Promise.all(body.items.map(({ run_id = '' }) => capstan.ended(run_id)));
  for (const [label, limit_usd] of [
    ['of=fifty', 2.5],
    ['of=none', 0.125],
  ])
    await capstan.request('PUT', `/v1/budgets/scoped/label:${label}`, { limit_usd, period: 'day' });
  for (const at of [1, 2, 3])
    await capstan.request('POST', '/skills', {
      pattern: { job_type: 'join', error_patterns: [`fault ${at}`] },
      instructions: `Correction ${at}`,
      source: 'human',
      success_count: at * 7,
    });
  await capstan.submit([{ id: 'asks', review: { title: 'Which of two?' } }]);
  await capstan.request('POST', '/v1/pipelines', { pipeline: 'counted', version: '1', steps });
}

test('the numbers of fifty rows over all lists are those of the API', async () => {
  await fillLists();
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go('/');
  for (const [name, { path, row, numbers }] of Object.entries(compared)) {
    await opened.walk(path);
    const rows = page.locator(row);
    const differences = async () => {
      const texts = (await rows.allInnerTexts()).map((text) => text.replace(/\s+/g, ' '));
      const asked = await numbers();
      const missing = asked.filter(
        (parts) => !texts.some((text) => parts.every((part) => text.includes(part))),
      );
      return { name, rows: texts.length - asked.length, missing };
    };
    await expect.poll(differences).toEqual({ name, rows: 0, missing: [] });
  }
  expect(await compared.runs?.numbers()).toHaveLength(50);
  opened.expectQuiet();
  await opened.close();
});
