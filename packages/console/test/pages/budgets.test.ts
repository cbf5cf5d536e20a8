/** The work of an administrator who limits the calls of a team, and looks at what each team spends. */
import type { Key } from '@capstan/core/contracts/access';
import type { ScopedBudget } from '@capstan/core/contracts/money';
import { expect, test } from 'vitest';
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
  await name.fill('team');
  const asked = page.waitForRequest(/costs\/series.*by=label%3Ateam/);
  await name.press('Enter');
  await asked;
  opened.expectQuiet();
  await opened.close();
});

test('a budget of a key is picked by its name, shown with it, and edited where it is seen', async () => {
  const { request, projectId } = visitors.studio.capstan;
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
  await row.getByLabel('Limit (USD)').fill('4.5');
  await row.getByRole('button', { name: 'Set' }).click();
  await row.getByText('$0 of $4.50 a day').waitFor();
  const { body } = await request<{ readonly items: readonly ScopedBudget[] }>(
    'GET',
    `/v1/budgets/scoped?scope=key:${key_id}`,
  );
  expect(body.items).toMatchObject([{ scope: `key:${key_id}`, period: 'day', limit_usd: 4.5 }]);
  await request('DELETE', `/v1/budgets/scoped/key:${key_id}`);
  opened.expectQuiet();
  await opened.close();
});
