/** That the page shows what a run is, asks before it destroys, and outlives a file that is gone. */

import type { Run } from '@capstan/core/contracts/run';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { isLong } from '../../../../test/support/long.ts';
import { withKeys } from '../support/hands.ts';
import { useSharedStudio } from '../support/studio.ts';

const visitors = useSharedStudio();

/** Four items of 0.01 USD each under a ceiling for two. */
async function startShort(): Promise<string> {
  const { capstan } = visitors.studio;
  const definition = {
    pipeline: 'short',
    version: '1',
    steps: [
      {
        id: 'chapter',
        capability: 'join',
        for_each: { items: [1, 2, 3, 4] },
        input: { part: '{{ item }}' },
      },
    ],
  };
  const request = { definition, job: {}, budget_ceiling_usd: 0.02 };
  return (await capstan.request<Run>('POST', '/v1/runs', request)).body.run_id;
}

test('a run whose items wait for budget shows that everywhere, and its button raises the budget', async () => {
  const { capstan } = visitors.studio;
  const id = await startShort();
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go(`/runs/${id}`);
  const words = 'Waiting for budget: 2 of 4 items of chapter';
  const doing = page.getByRole('region', { name: 'What the run is doing' });
  await doing.getByText(words).waitFor();
  await page.getByRole('heading', { name: 'short' }).getByText('Waiting for budget').waitFor();
  await page.getByRole('button', { name: '1 Waiting for budget' }).waitFor();
  await opened.walk('/runs');
  await page
    .getByRole('row', { name: id.slice(-8) })
    .getByText('Waiting for budget')
    .waitFor();
  await opened.walk(`/runs/${id}`);
  await doing.getByRole('button', { name: 'Raise the budget …' }).click();
  const sum = '$0.04 in all: $0.02 spent, 2 calls of chapter at $0.01 each';
  await page.getByText(`To finish, the run needs about ${sum}.`).waitFor();
  await page.getByLabel('Maximum cost (USD)').fill('1');
  await page.getByRole('button', { name: 'Set budget' }).click();
  expect((await capstan.ended(id)).state).toBe('succeeded');
  await page.getByRole('heading', { name: 'short' }).getByText('Succeeded').waitFor();
  opened.expectQuiet();
  await opened.close();
});

test('a cancel asks first, shows the spent money, works by keys alone, and stays with the run and its reason', async () => {
  const { capstan } = visitors.studio;
  const { run_id: id } = await capstan.submit([{ id: 'night', wait: '1d' }]);
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go(`/runs/${id}`);
  await page.getByRole('button', { name: 'Cancel …' }).click();
  await page.getByText('Spent so far: $0').waitFor();
  await page.getByRole('button', { name: 'Keep it running' }).click();
  expect((await capstan.read<Run>(`/v1/runs/${id}`)).state).toBe('running');
  const hands = withKeys(page);
  await hands.press(page.getByRole('button', { name: 'Cancel …' }));
  await hands.write(page.getByLabel('Reason (optional)'), 'wrong clip');
  await hands.press(page.getByRole('button', { name: 'Cancel the run' }));
  expect((await capstan.ended(id)).state).toBe('cancelled');
  await page.getByRole('heading', { name: 'test' }).getByText('Cancelled').waitFor();
  const doing = page.getByRole('region', { name: 'What the run is doing' });
  await doing.getByText(/^Cancelled by \S/).waitFor();
  await doing.getByText('wrong clip').waitFor();
  await opened.walk(`/runs/${id}?view=log`);
  await page.getByText('wrong clip').first().waitFor();
  opened.expectQuiet();
  await opened.close();
});

test("one's own key is revoked only by typing its name", async () => {
  const { capstan } = visitors.studio;
  const { body: own } = await capstan.request<{ key: string }>('POST', '/v1/keys', {
    name: 'mine alone',
    scopes: ['admin'],
    projects: [capstan.projectId],
  });
  const opened = await visitors.visitAs(own.key, {}, /401/);
  const { page } = opened;
  await opened.go('/settings?tab=keys');
  await page.getByRole('button', { name: 'Revoke mine alone' }).click();
  const revoke = page.getByRole('button', { name: 'Revoke the key' });
  expect(await revoke.isDisabled()).toBe(true);
  await page.getByLabel('Type mine alone to confirm').fill('mine alone');
  await revoke.click();
  await opened.arrive(/\/ui\/login$/);
  await opened.close();
});

/** The loads of the whole page from now on. */
function countLoads(page: Page): { readonly count: number } {
  const loads = { count: 0 };
  page.on('request', (request) => {
    if (request.isNavigationRequest()) loads.count += 1;
  });
  return loads;
}

test.runIf(isLong)(
  'a page whose files an update has replaced reloads once, at the same position',
  async () => {
    const opened = await visitors.visit({}, /404/);
    const { page } = opened;
    await opened.go(`/runs/${visitors.studio.done}?step=join`);
    const loads = countLoads(page);
    await page.route('**/timeline-tab*', (route) =>
      loads.count === 0 ? route.fulfill({ status: 404 }) : route.continue(),
    );
    // The reload is held for sixty frames of the page that it replaces: no failure is shown for the moment before it.
    let tellAlerts: (count: number) => void = () => {};
    const alerts = new Promise<number>((resolve) => {
      tellAlerts = resolve;
    });
    await page.exposeFunction('tellAlerts', tellAlerts);
    await page.evaluate(`{
    const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    addEventListener('beforeunload', async () => {
      for (let frame = 0; frame < 60; frame += 1) await painted();
      tellAlerts(document.querySelectorAll('[role=alert]').length);
    });
  }`);
    await page.route('**/ui/runs/*', (route) => alerts.then(() => route.continue()));
    await page.getByRole('tab', { name: 'Timeline' }).click();
    await page.getByRole('img', { name: /^Money in time/ }).waitFor();
    expect([loads.count, await alerts, await page.getByRole('alert').count()]).toEqual([1, 0, 0]);
    expect(new URL(page.url()).search).toBe('?step=join&view=timeline');
    opened.expectQuiet();
    await opened.close();
  },
);

test.runIf(isLong)(
  'a part of a panel that cannot be loaded leaves the other tabs, the run and the navigation',
  async () => {
    const opened = await visitors.visit({}, /Failed to load|could not be loaded|ERR_FAILED/);
    const { page } = opened;
    await opened.go(`/runs/${visitors.studio.done}?step=join`);
    await page.route('**/decision-tab*', (route) => route.abort());
    const drawer = page.getByRole('complementary', { name: 'Step join' });
    await drawer.getByRole('tab', { name: 'Decision' }).click();
    const alert = drawer.getByRole('alert');
    await alert.getByText('A part of this page could not be loaded').waitFor();
    await page.getByRole('heading', { name: 'reel' }).getByText('Succeeded').waitFor();
    await drawer.getByRole('tab', { name: 'Money' }).click();
    await alert.waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'Costs' }).click();
    await opened.arrive(/\/ui\/costs$/);
    opened.expectQuiet();
    await opened.close();
  },
);

test.runIf(isLong)(
  'a file of the page that is gone is tried once more, then reported, with everything else at hand',
  async () => {
    const opened = await visitors.visit({}, /Failed to load|could not be loaded|ERR_FAILED/);
    const { page } = opened;
    await opened.go(`/runs/${visitors.studio.done}`);
    const loads = countLoads(page);
    let refused = 0;
    await page.route('**/timeline-tab*', async (route) => {
      refused += 1;
      await route.abort();
    });
    await page.getByRole('tab', { name: 'Timeline' }).click();
    const alert = page.getByRole('alert');
    await alert.getByText('A part of this page could not be loaded').waitFor();
    expect(refused).toBeGreaterThanOrEqual(2);
    expect(loads.count).toBe(1);
    await page.getByRole('heading', { name: 'reel' }).getByText('Succeeded').waitFor();
    await page.unroute('**/timeline-tab*');
    await alert.getByRole('button', { name: 'Reload the page' }).click();
    await page.getByRole('img', { name: /^Money in time/ }).waitFor();
    await opened.close();
  },
);

test('a tab is named after what it shows, and Back goes to where one was on the page', async () => {
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go(`/runs/${visitors.studio.done}`);
  await page.waitForFunction("document.title.endsWith('reel · Succeeded · Capstan')");
  await page.getByRole('tab', { name: 'Log' }).first().click();
  await page.getByRole('tab', { name: 'Output' }).click();
  await page.getByRole('region', { name: 'Output' }).or(page.getByText('One')).first().waitFor();
  await page.goBack();
  await page.waitForURL((at) => at.searchParams.get('view') === 'log');
  await page.goBack();
  await page.waitForURL((at) => at.searchParams.get('view') === null);
  await page.getByText('join', { exact: true }).first().click();
  const drawer = page.getByRole('complementary', { name: 'Step join' });
  await drawer.getByRole('tab', { name: 'Decision' }).click();
  await page.goBack();
  await page.waitForURL(
    (at) => at.searchParams.get('step') === 'join' && at.searchParams.get('tab') === null,
  );
  await page.goBack();
  await page.waitForURL((at) => at.searchParams.get('step') === null);
  await drawer.waitFor({ state: 'detached' });
  await opened.walk('/skills');
  await page.waitForFunction("document.title.endsWith('Skills · Capstan')");
  opened.expectQuiet();
  await opened.close();
});
