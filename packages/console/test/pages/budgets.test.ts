/** The work of an administrator who limits the calls of a team, and looks at what each team spends. */
import { readFile } from 'node:fs/promises';
import type { Key } from '@capstan/core/contracts/access';
import type { CostSeries, ScopedBudget } from '@capstan/core/contracts/money';
import { expect, test, vi } from 'vitest';
import { keepBoth } from '../support/pictures.ts';
import { useSharedStudio } from '../support/studio.ts';

const visitors = useSharedStudio();

test('a budget of a label is set, shown with its bar and removed, also on a phone', async () => {
  const opened = await visitors.visit();
  const { page, axe } = opened;
  await opened.go('/costs');
  await page.getByText('None yet. A budget limits a part of the calls').waitFor();
  await page.getByRole('button', { name: 'New budget' }).click();
  const newBudget = page.locator('form');
  await newBudget.getByLabel('Name of the label').fill('team');
  await newBudget.getByLabel('Value of the label').fill('ads');
  await page.getByLabel('Period of the budget').selectOption('month');
  await page.getByLabel('Limit (USD)').fill('12.5');
  await page.getByRole('button', { name: 'Set', exact: true }).click();
  const row = page.getByRole('row', { name: /label:team=ads/ });
  await row.waitFor();
  expect(await row.textContent()).toContain('$0 of $12.50 a month');
  await opened.resizeTo(390);
  const findings = await axe('all');
  const cut = await page.evaluate(
    `[...document.querySelectorAll('table')].filter((table) => table.scrollWidth > table.parentElement.clientWidth + 1).length`,
  );
  expect([findings, cut]).toEqual([[], 0]);
  await row.getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('button', { name: 'Remove the budget' }).click();
  await page.getByText('None yet.').waitFor();
  await page.getByLabel('By', { exact: true }).selectOption('label');
  const name = page.getByLabel('Name of the label');
  await page.getByText('Type the name of a label above').waitFor();
  expect(await page.getByRole('columnheader', { name: 'capability' }).count()).toBe(0);
  const asked = page.waitForRequest(/costs\/series.*by=label%3Ateam/);
  await name.fill('team');
  await asked;
  await page.getByRole('columnheader', { name: 'label team' }).waitFor();
  opened.expectQuiet();
  await opened.close();
});

test('a budget of a key is picked by its name, shown with it, and edited where it is seen', async () => {
  const { request, read, projectId } = visitors.studio.capstan;
  const asked = { name: 'ads-team', scopes: ['capability:call'], projects: [projectId] };
  const { key_id } = (await request<Key>('POST', '/v1/keys', asked)).body;
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go('/costs');
  await page.getByRole('button', { name: 'New budget' }).click();
  await page.getByLabel('Kind of budget').selectOption('key');
  await page.getByLabel('Key', { exact: true }).selectOption({ label: `ads-team (${key_id})` });
  await page.getByLabel('Limit (USD)').fill('3');
  await page.getByRole('button', { name: 'Set', exact: true }).click();
  const row = page.getByRole('row', { name: /key ads-team/ });
  await row.getByText('$0 of $3.00 a day').waitFor();
  await row.getByRole('button', { name: 'Edit' }).click();
  const dialog = page.getByRole('dialog');
  expect(await dialog.getByLabel('Limit (USD)').inputValue()).toBe('3');
  expect(await dialog.getByLabel('Reported at').inputValue()).toBe('80');
  await dialog.getByLabel('Limit (USD)').fill('4.5');
  await dialog.getByLabel('Reported at').fill('62.5');
  await dialog.getByRole('button', { name: 'Set the limit' }).click();
  await row.getByText('$0 of $4.50 a day').waitFor();
  const body = await read<{ readonly items: readonly ScopedBudget[] }>(
    `/v1/budgets/scoped?scope=key:${key_id}`,
  );
  expect(body.items).toMatchObject([{ scope: `key:${key_id}`, period: 'day', limit_usd: 4.5, soft: 0.625 }]);
  await request('DELETE', `/v1/budgets/scoped/key:${key_id}`);
  opened.expectQuiet();
  await opened.close();
});

test('any days by two groups are the numbers of the API, and lead to their calls and to CSV', async () => {
  const { capstan } = visitors.studio;
  await capstan.request('POST', '/v1/projects', { name: 'another' });
  const { run_id } = await capstan.submit(
    [
      {
        id: 'covers',
        capability: 'join',
        for_each: { items: '{{ job.titles }}' },
        input: { part: '{{ item }}' },
      },
    ],
    { titles: ['a', 'b', 'c'] },
    { labels: { team: 'night, shift' } },
  );
  expect((await capstan.ended(run_id)).state).toBe('succeeded');
  const budget = '/v1/budgets/scoped/label:team=night';
  await capstan.request('PUT', budget, { limit_usd: 5, period: 'month' });
  const opened = await visitors.visit();
  const { page, axe } = opened;
  await opened.go('/costs?period=day&by=label&label=team&and=capability');
  const row = page.getByRole('row', { name: /night, shift × join/ });
  await row.waitFor();
  const body = await capstan.read<CostSeries>('/v1/costs/series?period=day&by=label:team&and=capability');
  const told = body.series.find(({ name, and }) => name === 'night, shift' && and === 'join');
  expect(told).toMatchObject({ usd: 0.03, calls: 3 });
  expect(await row.getByRole('cell').allTextContents()).toEqual(
    expect.arrayContaining(['night, shift × join', '3', '$0.03']),
  );
  const href = new URL((await row.getByRole('link').getAttribute('href')) ?? '', 'http://a');
  expect([href.pathname, Object.fromEntries(href.searchParams)]).toEqual([
    '/ui/calls',
    { since: body.starts[0], until: body.until, label: 'team=night, shift', capability: 'join' },
  ]);
  const last = body.starts.indexOf(told?.points.at(-1)?.[0] ?? '');
  const chart = page.getByRole('img', { name: /Costs by label team × capability/ });
  const { width = 0 } = (await chart.boundingBox()) ?? {};
  const x = ((last + 0.5) / Math.max(14, body.starts.length)) * width;
  // What loads later moves the chart away from the pointer.
  await vi.waitFor(async () => {
    await chart.hover({ position: { x, y: 140 } });
    await page.locator('[data-tooltip]').getByText('night, shift × join').waitFor({ timeout: 1_000 });
  }, 60_000);
  await keepBoth(opened, 'costs-crossed');
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'CSV' }).click(),
  ]);
  expect(file.suggestedFilename()).toBe('costs.csv');
  const csv = await readFile(await file.path(), 'utf8');
  expect(csv).toContain('"night, shift",join,0.03,3,0');
  await page.getByLabel('Period').selectOption('from … to …');
  await page.getByLabel('First day').fill('2026-03-28');
  await page.getByText(/^Spent 2026-03-28 to/).waitFor();
  await opened.go('/costs?period=last_7_days&by=label&label=team&and=capability');
  await opened.resizeTo(390);
  await row.waitFor();
  const wide = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
  expect([await axe('all'), wide]).toEqual([[], 0]);
  await capstan.request('DELETE', `${budget}?period=month`);
  opened.expectQuiet();
  await opened.close();
});
