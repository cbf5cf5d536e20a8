/**
 * Ten things that people come for, from Home, with the clicks that they take: none takes more than four. The long form
 * prints them.
 */
import type { Key } from '@capstan/core/contracts/access';
import type { Locator } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import { startInstance } from '../../../../test/support/fleet.ts';
import type { OpenPage } from '../support/browser.ts';
import { startRunOf, useStudio } from '../support/studio.ts';

interface ExecAnswer {
  readonly routing: { readonly decision_id: string };
}

const visitors = useStudio();
const mostClicks = 4;
const taken: string[] = [];
afterAll(() => console.log(taken.join('\n')));

interface Person extends OpenPage {
  readonly click: (control: Locator) => Promise<void>;
  /** An option of a list counts as a click. */
  readonly pick: (list: Locator, option: string) => Promise<void>;
  /** A page, by its name in the navigation. */
  readonly open: (name: string) => Promise<void>;
}

/** @param act is done from Home */
async function doTask(name: string, act: (person: Person) => Promise<void>): Promise<void> {
  // A definition that was never stored has no versions to choose from.
  const opened = await visitors.visit({}, /404.*\/versions\?/);
  let clicks = 0;
  const click = async (control: Locator): Promise<void> => {
    await control.click();
    clicks += 1;
  };
  const navigation = opened.page.getByRole('navigation').first();
  await opened.go('/');
  await act({
    ...opened,
    click,
    pick: async (list, option) => {
      await list.selectOption(option);
      clicks += 1;
    },
    open: (page) => click(navigation.getByRole('link', { name: page, exact: true })),
  });
  taken.push(`${clicks} clicks: ${name}`);
  expect(clicks).toBeLessThanOrEqual(mostClicks);
  opened.expectQuiet();
  await opened.close();
}

test('why a run failed, and to run it again for less', () =>
  doTask('why a run failed, and to run it again under a budget', async ({ page, click, pick, arrive }) => {
    const failures = page.getByRole('list', { name: 'Failed in the last 24 h' });
    await click(failures.getByRole('link').first());
    await page
      .getByText(/rate must be a whole number of Hz, not x/)
      .first()
      .waitFor();
    await click(page.getByRole('button', { name: 'Run again …' }).first());
    const dialog = page.getByRole('dialog');
    await pick(dialog.getByLabel('Budget', { exact: true }), 'other');
    await dialog.getByLabel('Budget in USD').fill('0.5');
    const before = new URL(page.url()).pathname;
    await click(dialog.getByRole('button', { name: 'Start a new run' }));
    await arrive(new RegExp(`/runs/(?!${before.split('/').at(-1)})run_`));
  }));

test('which key spent most yesterday', () =>
  doTask('which key spent most yesterday', async ({ page, pick, open }) => {
    await open('Costs');
    await pick(page.getByLabel('Period'), 'yesterday');
    await pick(page.getByLabel('By', { exact: true }), 'key');
    await page.getByRole('heading', { name: 'Spent yesterday' }).waitFor();
    await page.waitForURL(/period=yesterday/);
  }));

test('why an instance gets no calls', async () => {
  const { capstan } = visitors.studio;
  const instance = await startInstance(capstan, { name: 'out-of-use' });
  const { endpoint } = instance;
  await capstan.request('POST', '/v1/capabilities/out-of-use/drain', { endpoint, reason: 'new driver' });
  await doTask('why an instance gets no calls', async ({ page, click, open }) => {
    await open('Capabilities');
    await click(page.getByRole('link', { name: 'out-of-use', exact: true }));
    await page.getByText('new driver').first().waitFor();
  });
  await instance.stop();
});

test('to compare two runs', async () => {
  const { capstan } = visitors.studio;
  const job = { clips: ['a'], title: 'One', rate: 44_100 };
  const ids = [await startRunOf(capstan, job), await startRunOf(capstan, { ...job, title: 'Two' })];
  for (const id of ids) await capstan.ended(id);
  await doTask('to compare two runs', async ({ page, click, open, arrive }) => {
    await open('Runs');
    for (const id of ids) await click(page.getByLabel(`Choose ${id}`));
    await click(page.getByRole('link', { name: 'Compare', exact: true }));
    await arrive(/\/compare\//);
    await page.getByText(/different jobs/).waitFor();
  });
});

test('a pipeline from nothing, with mocks', () =>
  doTask('a pipeline from nothing, tried with mocks', async ({ page, click, open }) => {
    await open('Pipelines');
    await click(page.getByRole('link', { name: 'New pipeline' }).first());
    await click(page.getByRole('tab', { name: 'Try with mocks' }));
    await page.getByText(/succeeded, after .* of virtual time/).waitFor();
    await page.evaluate('localStorage.clear()');
  }));

test('the last calls of all capabilities', async () => {
  const { capstan } = visitors.studio;
  const { body } = await capstan.request<ExecAnswer>('POST', '/v1/capabilities/trim/exec', {
    input: { clip: 'a' },
  });
  const decision = body.routing.decision_id;
  await doTask('the last calls, and one of them', async ({ page, click, open }) => {
    await open('Calls');
    await click(page.locator(`a[href*="${decision}"]`).first());
    await page.waitForURL(new RegExp(`/decisions/${decision}`));
    await page.getByText(decision).first().waitFor();
  });
});

test('to raise the budget of a label', async () => {
  const { capstan } = visitors.studio;
  const limit = { period: 'day', limit_usd: 2 };
  await capstan.request('PUT', '/v1/budgets/scoped/label:team=film', limit);
  await doTask('to raise the budget of a label', async ({ page, click, open }) => {
    await open('Costs');
    const row = page.getByRole('row', { name: /label:team=film/ });
    await click(row.getByRole('button', { name: 'Edit' }));
    await page.getByRole('dialog').getByLabel('Limit (USD)').fill('3');
    await click(page.getByRole('button', { name: 'Set the limit' }));
    await row.getByText('$0 of $3.00 a day').waitFor();
  });
});

test('to revoke a key', async () => {
  const { request, read, projectId } = visitors.studio.capstan;
  const { body } = await request<Key>('POST', '/v1/keys', {
    name: 'left behind',
    scopes: ['run:read'],
    projects: [projectId],
  });
  await doTask('to revoke a key', async ({ page, click, open }) => {
    await open('Settings');
    await click(page.getByRole('button', { name: 'Revoke left behind' }));
    await click(page.getByRole('button', { name: 'Revoke the key' }));
    await page
      .getByRole('row', { name: /left behind/ })
      .getByText(/revoked/i)
      .first()
      .waitFor();
  });
  const keys = (await read<{ readonly items: readonly Key[] }>('/v1/keys?limit=200')).items;
  expect(keys.find(({ key_id }) => key_id === body.key_id)?.revoked_at ?? null).not.toBeNull();
});

test('to read what a ladder did', async () => {
  const { waiting } = visitors.studio;
  await doTask('to read what a ladder did', async ({ page, click, open }) => {
    await open('Runs');
    await click(page.locator(`tbody a[href*="${waiting}"]`).first());
    await click(page.getByText('sound', { exact: true }).first());
    await click(page.getByRole('tab', { name: 'Ladder' }));
    await page
      .getByText(/rate must be a whole number of Hz/)
      .first()
      .waitFor();
  });
});

test('to correct a refused input', async () => {
  const { capstan, waiting, correction } = visitors.studio;
  await doTask('to correct a refused input', async ({ page, click }) => {
    await click(page.locator(`a[href*="${correction}"]`).first());
    await page.getByRole('heading', { name: 'Your decision' }).waitFor();
    await page.keyboard.press('e');
    await click(page.getByRole('button', { name: 'JSON' }));
    await page.getByLabel('Input as JSON').fill('{ "rate": 48000 }');
    await click(page.locator('button:enabled', { hasText: 'Submit' }));
    expect((await capstan.ended(waiting)).state).toBe('succeeded');
  });
});
