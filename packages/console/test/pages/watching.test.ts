/** Who is let in, and the view of open runs. In a real browser, against the real server, worker and database. */

import { execFileSync } from 'node:child_process';
import type { LoginLink } from '@capstan/core/contracts/sign-in';
import { expect, test } from 'vitest';
import { connectDatabase } from '../../../../src/db/connect.ts';
import { startInstance } from '../../../../test/support/fleet.ts';
import { isLong } from '../../../../test/support/long.ts';
import { waitFor } from '../../../../test/support/wait.ts';
import { formatUsd } from '../../src/shared/format.ts';
import type { OpenPage } from '../support/browser.ts';
import { startRunOf, useSharedStudio } from '../support/studio.ts';

const visitors = useSharedStudio();

test('a link signs in once, and its code is gone from the address', async () => {
  const { url, request } = visitors.studio.capstan;
  const { body } = await request<LoginLink>('POST', '/v1/login-links');
  const opened = await visitors.visitAs(null, {}, /401|400|404|422/);
  await opened.page.goto(body.url);
  await opened.page.getByRole('heading', { name: 'Home' }).waitFor();
  expect(opened.page.url()).toBe(`${url}/ui/`);
  const second = await visitors.visitAs(null, {}, /401|400|404|422/);
  await second.page.goto(body.url);
  await second.page.getByRole('alert').waitFor();
  await Promise.all([opened.close(), second.close()]);
});

test('a link may lead to a run, and to nowhere else', async () => {
  const { request } = visitors.studio.capstan;
  for (const [next, path] of [
    [`/runs/${visitors.studio.done}`, `/ui/runs/${visitors.studio.done}`],
    ['//evil.example', '/ui/'],
  ] as const) {
    const { body } = await request<LoginLink>('POST', '/v1/login-links');
    const link = new URL(body.url);
    link.searchParams.set('next', next);
    const opened = await visitors.visitAs(null, {}, /401/);
    await opened.page.goto(link.href);
    await opened.arrive(new RegExp(`^${path}$`));
    opened.expectQuiet();
    await opened.close();
  }
});

test('a person without a session is asked to sign in, and returns to the requested page', async () => {
  const { url, key } = visitors.studio.capstan;
  const opened = await visitors.visitAs(null, {}, /401/);
  const { page } = opened;
  await page.goto(`${url}/ui/runs/${visitors.studio.done}`);
  await page.getByLabel('Or paste an API key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'reel' }).waitFor();
  expect(new URL(page.url()).pathname).toBe(`/ui/runs/${visitors.studio.done}`);
  opened.expectQuiet();
  await opened.close();
});

test('an open run moves by itself, and the same step is selected in every view', async () => {
  const opened = await visitors.visit();
  const { page } = opened;
  const id = await startRunOf(visitors.studio.capstan, { clips: ['a', 'b'], title: 'Live', rate: 44_100 });
  await opened.go(`/runs/${id}?step=join`);
  await page.getByRole('heading', { name: 'reel' }).getByText('succeeded').waitFor();
  await page.getByRole('tab', { name: 'Log' }).first().click();
  await page.getByRole('tab', { name: 'Timeline' }).click();
  await page.getByRole('complementary', { name: 'Step join' }).waitFor();
  expect(page.url()).toContain('step=join');
  const { cost_usd, finished_at } = await visitors.studio.capstan.ended(id);
  expect(cost_usd).toBeGreaterThan(0);
  const money = page.getByRole('img', { name: `Money in time: ${formatUsd(cost_usd)} spent, $0 reserved` });
  await money.waitFor();
  await opened.walk(`/runs/${id}?view=timeline&at=${finished_at}`);
  await money.waitFor();
  opened.expectQuiet();
  await opened.close();
});

test('a run that ends while its page is being read is shown as it ended', async () => {
  const { capstan } = visitors.studio;
  const { run_id: id } = await capstan.submit([{ id: 'a', wait: '1d' }]);
  const [opened, other] = [await visitors.visit(), await visitors.visit()];
  const endOn = ({ page }: OpenPage) => page.getByRole('heading', { name: 'test' }).getByText('Cancelled');
  await other.go(`/runs/${id}`);
  await opened.go('/runs');
  let isFirst = true;
  await opened.page.route(`**/v1/runs/${id}`, async (route) => {
    if (!isFirst) return route.continue();
    isFirst = false;
    const response = await route.fetch();
    await capstan.request('POST', `/v1/runs/${id}/cancel`, {});
    await endOn(other).waitFor();
    await route.fulfill({ response });
  });
  await opened.page.locator(`a[href$="/runs/${id}"]`).first().click();
  await endOn(opened).waitFor();
  for (const { expectQuiet, close } of [opened, other]) {
    expectQuiet();
    await close();
  }
});

test('a step that waits for an instance shows the considered ones, and its run shows that in the list', async () => {
  const { capstan } = visitors.studio;
  const far = [{ id: 'far', capability: 'trim', tags: ['moon'], wait_for_capability: '1h' }];
  const { run_id } = await capstan.submit(far);
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go('/runs');
  await page
    .getByRole('row', { name: run_id.slice(-8) })
    .getByText('Waiting for an instance')
    .waitFor();
  await opened.walk(`/runs/${run_id}?step=far`);
  const why = page.getByRole('region', { name: 'Why it waits' });
  await why.getByRole('heading', { name: 'Ruled out' }).waitFor();
  await why.getByRole('listitem').nth(1).waitFor();
  expect(await why.getByRole('listitem').count()).toBe(2);
  await capstan.request('POST', `/v1/runs/${run_id}/cancel`, {});
  opened.expectQuiet();
  await opened.close();
});

test('a step shows the event that it waits for with a line to send it, and the instance that answers later', async () => {
  const { capstan } = visitors.studio;
  const renderer = await startInstance(capstan, { name: 'later' });
  renderer.handle = () => undefined;
  const { run_id } = await capstan.submit([
    {
      id: 'paid',
      event: {
        name: 'paid',
        key: "it's 7",
        schema: { type: 'object', required: ['sum'], properties: { sum: { type: 'number' } } },
      },
    },
    { id: 'film', capability: 'later' },
  ]);
  await waitFor('the call', () => renderer.execs[0]);
  // No instance reaches this server, which has no address for it. The row is that of a call that was left to its instance.
  const db = connectDatabase(capstan.databaseUrl, 1);
  const until = new Date(Date.now() + 3_600_000);
  const wait_since = new Date();
  const parked = { state: 'waiting', awaiting: 'callback', wait_since, wait_until: until };
  await db('step').where({ run_id, step_id: 'film' }).update(parked);
  await db.destroy();
  const opened = await visitors.visit();
  const { page } = opened;
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await opened.go(`/runs/${run_id}?step=film`);
  const wait = page.getByRole('region', { name: 'Open wait' });
  const { host } = new URL(renderer.endpoint);
  await wait.filter({ hasText: `Waits for the answer of ${host} until` }).waitFor();
  await opened.walk(`/runs/${run_id}?step=paid`);
  await wait.filter({ hasText: /Waits for the event paid with key "it's 7" until .*in 23 h/ }).waitFor();
  await wait.getByRole('button', { name: 'Copy the line of capstan' }).waitFor();
  await wait.getByRole('button', { name: 'Copy the line of curl' }).click();
  const line = await page.evaluate<string>('navigator.clipboard.readText()');
  execFileSync('sh', ['-c', line], { stdio: 'pipe', env: { ...process.env, CAPSTAN_API_KEY: capstan.key } });
  await wait.waitFor({ state: 'detached' });
  await capstan.request('POST', `/v1/runs/${run_id}/cancel`, {});
  await renderer.stop();
  opened.expectQuiet();
  await opened.close();
});

test('keys go everywhere: the palette, and g with a letter', async () => {
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go('/');
  await page.keyboard.press('Control+k');
  const search = page.getByRole('combobox');
  const chosen = page.getByRole('option', { selected: true });
  await search.fill('pipeline');
  await page.getByRole('option', { name: /^reel/ }).waitFor();
  await search.fill('reel');
  await chosen.getByText('reel', { exact: true }).waitFor();
  await page.keyboard.press('Enter');
  await opened.arrive(/\/ui\/pipelines\/reel/);
  await page.keyboard.press('g');
  await page.keyboard.press('c');
  await opened.arrive(/\/ui\/capabilities/);
  opened.expectQuiet();
  await opened.close();
});

test.runIf(isLong)('another project sees nothing of the first', async () => {
  const { url, request } = visitors.studio.capstan;
  const { body: project } = await request<{ project_id: string }>('POST', '/v1/projects', { name: 'other' });
  const { body: key } = await request<{ key: string }>('POST', '/v1/keys', {
    name: 'other',
    scopes: ['admin'],
    projects: [project.project_id],
  });
  const opened = await visitors.visitAs(key.key, {}, /404/);
  await opened.go('/runs');
  await opened.page.getByText('No runs yet').waitFor();
  await opened.page.goto(`${url}/ui/runs/${visitors.studio.done}`);
  await opened.page.getByRole('heading', { name: 'Run not found' }).waitFor();
  opened.expectQuiet();
  await opened.close();
});

test.runIf(isLong)('the page of a revoked key ends within five seconds', async () => {
  const { request, read } = visitors.studio.capstan;
  const session = await read<{ items: { project_id: string }[] }>('/v1/projects');
  const projects = session.items.slice(0, 1).map(({ project_id }) => project_id);
  const { body } = await request<{ key_id: string; key: string }>('POST', '/v1/keys', {
    name: 'guest',
    scopes: ['admin'],
    projects,
  });
  const opened = await visitors.visitAs(body.key, {}, /401|ERR_INCOMPLETE_CHUNKED/);
  await opened.go('/runs');
  await opened.page.getByText('live', { exact: true }).waitFor();
  await request('DELETE', `/v1/keys/${body.key_id}`);
  await opened.page.getByLabel('Or paste an API key').waitFor();
  opened.expectQuiet();
  await opened.close();
});

test('a lost stream is shown, and missed events appear when it is back', {}, async () => {
  const opened = await visitors.visit({}, /ERR_INTERNET_DISCONNECTED|Failed to load/);
  const { page, context } = opened;
  await opened.go('/runs');
  await page.getByText('live', { exact: true }).waitFor();
  await context.setOffline(true);
  const id = await startRunOf(visitors.studio.capstan, { clips: ['a'], title: 'Missed', rate: 44_100 });
  await visitors.studio.capstan.ended(id);
  await context.setOffline(false);
  await page.getByTitle(id).waitFor();
  opened.expectQuiet();
  await opened.close();
});

test('the first page loads at most 150 kB', async () => {
  const opened = await visitors.visit();
  await opened.go('/');
  const loaded = (await opened.page.evaluate(
    'performance.getEntriesByType("resource").filter(({ name }) => /assets/.test(name)).map(({ name, encodedBodySize }) => [encodedBodySize, name])',
  )) as [number, string][];
  const bytes = loaded.reduce((sum, [size]) => sum + size, 0);
  expect(bytes).toBeGreaterThan(50_000);
  expect(bytes < 150_000 ? [] : loaded.toSorted(([one], [other]) => other - one)).toEqual([]);
  await opened.close();
});
