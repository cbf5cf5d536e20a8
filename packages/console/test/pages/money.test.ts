/** Money as the page promises it: what a plan may cost, and which budget lets a run continue. */
import type { Run } from '@capstan/core/contracts/run';
import { expect, test } from 'vitest';
import { waitFor } from '../../../../test/support/wait.ts';
import { useSharedStudio } from '../support/studio.ts';

const visitors = useSharedStudio();

async function store(definition: object): Promise<void> {
  const { status } = await visitors.studio.capstan.request('POST', '/v1/pipelines', definition);
  expect(status).toBe(201);
}

const covers = {
  id: 'covers',
  capability: 'join',
  for_each: { items: '{{ job.titles }}' },
  input: { part: '{{ item }}' },
};

test('the plan of an unknown number of items promises no bound that the run exceeds', async () => {
  const { capstan } = visitors.studio;
  await store({
    pipeline: 'open-list',
    version: '1',
    steps: [
      { id: 'list', capability: 'trim', input: { titles: ['a', 'b', 'c', 'd'] } },
      { ...covers, for_each: { items: '{{ steps.list.output.titles }}' } },
    ],
  });
  const started = await capstan.request<Run>('POST', '/v1/runs', { pipeline: 'open-list', job: {} });
  const { cost_usd } = await capstan.ended(started.body.run_id);
  expect(cost_usd).toBe(0.04);
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go('/pipelines/open-list');
  await page.getByRole('button', { name: 'Plan' }).click();
  await page.getByText('Only the run knows how many items covers will have').waitFor();
  const [, worst = '0'] = /at worst \$([\d,.]+),/.exec(await page.locator('main').innerText()) ?? [];
  expect(Number(worst.replaceAll(',', ''))).toBeGreaterThan(cost_usd);
  await page.getByText(/The last run that succeeded cost \$0\.04 and took/).waitFor();
  opened.expectQuiet();
  await opened.close();
});

test('a budget that a child run has used up is raised in one step, from either run', async () => {
  const { capstan } = visitors.studio;
  const child = { pipeline: 'some-covers', version: '1', job_schema: { type: 'object' }, steps: [covers] };
  await store(child);
  const step = { id: 'cover', pipeline: 'some-covers@1', input: { titles: ['a', 'b', 'c'] } };
  const { run_id: id } = await capstan.submit([step], {}, { pipeline: 'album', budget_ceiling_usd: 0.005 });
  const childId = await waitFor('the child run to wait for budget', async () => {
    const body = await capstan.read<Run>(`/v1/runs/${id}`);
    return body.awaiting?.includes('budget') ? body.steps[0]?.sub_run_id : undefined;
  });
  const opened = await visitors.visit();
  const { page } = opened;
  const doing = page.getByRole('region', { name: 'What the run is doing' });
  await opened.go(`/runs/${childId}`);
  await doing.getByText('It is the budget of the run above').waitFor();
  await doing.getByRole('link', { name: 'Review the budget' }).waitFor();
  expect(await doing.getByRole('button', { name: 'Raise the budget …' }).count()).toBe(0);
  await page.getByRole('button', { name: 'Budget …', exact: true }).click();
  await page.getByText('a limit here does not raise').waitFor();
  expect(await page.getByRole('button', { name: 'Set budget' }).isDisabled()).toBe(true);
  await page.keyboard.press('Escape');
  await doing.getByRole('link', { name: 'the run above' }).click();
  await doing.getByRole('link', { name: 'Open that run' }).waitFor();
  await doing.getByRole('button', { name: 'Raise the budget …' }).click();
  await expect
    .poll(async () => Number(await page.getByLabel('Maximum cost (USD)').inputValue()))
    .toBeGreaterThanOrEqual(0.03);
  await page.getByRole('button', { name: 'Set budget' }).click();
  await page.getByRole('heading', { name: 'album' }).getByText('Succeeded').waitFor();
  expect(await capstan.ended(id)).toMatchObject({ state: 'succeeded', cost_usd: 0.03 });
  opened.expectQuiet();
  await opened.close();
});

test('a run that waits for the budget of a label leads to that budget', async () => {
  const { capstan } = visitors.studio;
  const scope = 'label:show=winter';
  const budget = `/v1/budgets/scoped/${encodeURIComponent(scope)}`;
  await capstan.request('PUT', budget, { limit_usd: 0.015 });
  const { run_id: id } = await capstan.submit(
    [covers],
    { titles: ['a', 'b'] },
    { labels: { show: 'winter' } },
  );
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go(`/runs/${id}`);
  const doing = page.getByRole('region', { name: 'What the run is doing' });
  await doing.getByText(scope).first().waitFor();
  await doing.getByRole('link', { name: 'Review the budget' }).click();
  await opened.arrive(/\/ui\/reviews\//);
  await capstan.request('DELETE', budget);
  expect((await capstan.ended(id)).state).toBe('succeeded');
  opened.expectQuiet();
  await opened.close();
});
