/** Every call of the project: the list, its filters as addresses, and the page of a call with its contents. */
import type { CallRecord } from '@capstan/core/contracts/call';
import type { ExecAnswer } from '@capstan/core/contracts/decision';
import { formatUsd } from '@capstan/core/money/nano-usd';
import { expect, test } from 'vitest';
import { useStudio } from '../support/studio.ts';

const visitors = useStudio();

async function readCalls(search: string): Promise<readonly CallRecord[]> {
  const { body } = await visitors.studio.capstan.request<{ items: CallRecord[] }>(
    'GET',
    `/v1/calls?${search}`,
  );
  return body.items;
}

test('the list has the rows and the costs of the API, and its filters are addresses', async () => {
  const calls = await readCalls('limit=50');
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go('/calls');
  const rows = page.getByRole('region', { name: 'Calls' }).locator('tbody tr');
  await rows.first().waitFor();
  const links = await Promise.all(
    (await rows.locator('td:first-child a').all()).map((link) => link.getAttribute('href')),
  );
  const costs = await rows.locator('td:last-child').allTextContents();
  const shown = links.map((link, index) => [link, costs[index]]);
  expect(shown).toEqual(
    calls.map(({ decision_id, cost_usd }) => [
      `/ui/decisions/${decision_id}`,
      cost_usd === null ? '–' : formatUsd(cost_usd),
    ]),
  );
  await page.getByLabel('Outcome').selectOption('failed');
  const failed = await readCalls('limit=50&outcome=failed');
  expect(failed.length).toBeLessThan(calls.length);
  await expect.poll(() => rows.count()).toBe(failed.length);
  expect(new URL(page.url()).search).toBe('?outcome=failed');
  opened.expectQuiet();
  await opened.close();
});

test('the id of a decision leads to its call, whose contents are a conversation if they are kept', async () => {
  const { capstan } = visitors.studio;
  const projects = await capstan.request<{ items: { project_id: string }[] }>('GET', '/v1/projects');
  const id = projects.body.items[0]?.project_id;
  await capstan.request('PUT', `/v1/projects/${id}/settings`, { content_days: 1 });
  const messages = [{ role: 'user', content: 'Which clip is best?' }];
  const called = await capstan.request<ExecAnswer>('POST', '/v1/capabilities/concat/exec', {
    input: { messages },
  });
  const { decision_id } = called.body.routing;
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go('/');
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Search pages, ids and actions' }).fill(decision_id);
  await page.getByRole('option', { name: decision_id }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Call of concat' }).waitFor();
  await page.getByRole('list', { name: 'Conversation' }).getByText('Which clip is best?').waitFor();
  expect(await opened.axe()).toEqual([]);
  await page.getByRole('button', { name: 'What if …' }).click();
  await page.getByText('It would go to the same instance.').waitFor();
  await page.getByRole('link', { name: 'Open in Try it' }).click();
  await page.getByText('Which clip is best?').first().waitFor();
  expect(new URL(page.url()).search).toBe(`?tab=try&from=${decision_id}`);
  opened.expectQuiet();
  await opened.close();
});
