/** Every call of the project: the list, its filters as addresses, and the page of a call with its contents. */
import type { CallRecord } from '@capstan/core/contracts/call';
import type { ExecAnswer } from '@capstan/core/contracts/decision';
import { formatUsd } from '@capstan/core/money/nano-usd';
import { expect, test } from 'vitest';
import { startInstance } from '../../../../test/support/fleet.ts';
import { useStudio } from '../support/studio.ts';

const visitors = useStudio();

async function readCalls(search: string): Promise<readonly CallRecord[]> {
  const body = await visitors.studio.capstan.read<{ items: CallRecord[] }>(`/v1/calls?${search}`);
  return body.items;
}

test('the list has the rows and the costs of the API, and its filters are addresses', async () => {
  const calls = await readCalls('limit=50');
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go('/calls');
  const rows = page.getByRole('region', { name: 'Calls' }).locator('tbody tr');
  await rows.first().waitFor();
  await page.getByRole('link', { name: 'Keep contents for some days' }).waitFor();
  expect(await opened.axe('all')).toEqual([]);
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
  const scopes = ['capability:read', 'run:read', 'cost:read'];
  const made = await capstan.request<{ key: string }>('POST', '/v1/keys', {
    name: 'a reader',
    scopes,
    projects: [id],
  });
  const reader = await visitors.visitAs(made.body.key, {}, /403/);
  await reader.go(`/decisions/${decision_id}`);
  await reader.page.getByText('keys with the scope content:read').waitFor();
  await reader.close();
});

test('aliases of models, and what the cache has, are listed, changed and deleted', async () => {
  const { capstan } = visitors.studio;
  const model = await startInstance(capstan, { name: 'model.large' });
  const other = await startInstance(capstan, { name: 'model.small' });
  const cached = { id: 'mixed', capability: 'concat', cache: { ttl: '1h', insist: true } };
  for (const at of [1, 2, 2]) {
    const { run_id } = await capstan.submit([{ ...cached, input: { at } }]);
    expect((await capstan.ended(run_id)).state).toBe('succeeded');
  }
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go('/');
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Search pages, ids and actions' }).fill('aliases');
  await page.keyboard.press('Enter');
  await page.getByLabel('Alias', { exact: true }).fill('openai/gpt-4o');
  await page.getByLabel('Leads to').fill('model.large');
  await page.getByRole('button', { name: 'Set alias' }).click();
  const aliases = page.getByRole('region', { name: 'Aliases' }).locator('tbody tr');
  await aliases.getByRole('link', { name: 'model.large' }).waitFor();
  await page.getByRole('button', { name: 'Change openai/gpt-4o' }).click();
  await page.getByLabel('Leads to').fill('model.small');
  await page.getByRole('button', { name: 'Set alias' }).click();
  await aliases.getByRole('link', { name: 'model.small' }).waitFor();
  expect(await opened.axe('all')).toEqual([]);
  await page.getByRole('button', { name: 'Delete openai/gpt-4o' }).click();
  await page.getByRole('button', { name: 'Delete the alias' }).click();
  await page.getByText('No aliases yet').waitFor();
  await opened.walk('/capabilities');
  await page.getByRole('link', { name: 'Cache' }).click();
  const summary = page.getByRole('region', { name: 'Cache by capability' }).locator('tbody tr');
  await summary.filter({ hasText: 'concat' }).getByText('2 results').waitFor();
  const results = page.getByRole('region', { name: 'Results of steps' }).locator('tbody tr');
  await results.nth(1).waitFor();
  expect(await results.count()).toBe(2);
  expect(await opened.axe('all')).toEqual([]);
  await results.first().getByRole('button').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByText('1 deleted.').waitFor();
  await page.getByRole('button', { name: 'Delete all of concat' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await summary.filter({ hasText: 'concat' }).getByText('nothing').waitFor();
  opened.expectQuiet();
  await opened.close();
  for (const instance of [model, other]) await instance.stop();
});

test('an alias of a pipeline is listed with its version and deleted', async () => {
  await visitors.studio.capstan.request('PUT', '/v1/pipelines/reel/aliases/stable', { version: '1.0' });
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go('/pipelines/reel');
  await page.getByRole('list', { name: 'Aliases' }).getByText('stable is 1.0').waitFor();
  await page.getByRole('button', { name: 'Delete the alias stable' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete the alias' }).click();
  await page.getByRole('button', { name: 'Delete the alias stable' }).waitFor({ state: 'detached' });
  opened.expectQuiet();
  await opened.close();
});
