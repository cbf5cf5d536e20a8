/** The page in a real browser, against the real server, worker and database: what somebody sees and does. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatUsd } from '../../../console/src/shared/money.ts';
import type { LoginLink } from '../../../src/contracts/session.ts';
import { type Look, launchBrowser, type OpenPage, openPage, signIn, type Theme } from '../support/browser.ts';
import { keepPicture } from '../support/pictures.ts';
import { askQuestion, openStudio, type Studio, startRunOf } from '../support/studio.ts';
import { tellEditorStories } from './editor-stories.ts';
import { tellLearningStories } from './learning-stories.ts';
import { tellProjectStories } from './project-stories.ts';
import { tellReviewStories } from './review-stories.ts';

let studio: Studio;
let browser: Browser;

beforeAll(async () => {
  [studio, browser] = await Promise.all([openStudio(), launchBrowser()]);
});
afterAll(async () => {
  await browser?.close();
  await studio?.close();
});

async function visitAs(key: string, look: Look = {}, expected: RegExp | null = null): Promise<OpenPage> {
  const { url } = studio.capstan;
  const opened = await openPage(browser, url, look, expected);
  await signIn(opened, url, key);
  return opened;
}

function visit(look: Look = {}, expected: RegExp | null = null): Promise<OpenPage> {
  return visitAs(studio.capstan.key, look, expected);
}

/** Some say by themselves when they are complete. */
function listPages(): readonly (readonly [name: string, path: string, complete?: string])[] {
  const { done, failed, waiting, question } = studio;
  return [
    ['home', '/'],
    ['runs', '/runs'],
    ['run', `/runs/${done}`],
    ['run-step', `/runs/${done}?step=join&tab=decision`],
    ['run-timeline', `/runs/${done}?view=timeline`],
    ['run-log', `/runs/${failed}?view=log`],
    ['run-output', `/runs/${done}?view=output`],
    ['run-waiting', `/runs/${waiting}`],
    ['reviews', '/reviews'],
    ['review', `/reviews/${question}`],
    ['pipelines', '/pipelines'],
    ['pipeline', '/pipelines/reel'],
    ['editor', '/pipelines/new/edit?example=true', 'checked by the server'],
    ['fleet', '/capabilities'],
    ['capability-why', '/capabilities/trim?tab=why'],
    ['skills', '/skills'],
    ['costs', '/costs'],
    ['ledger', '/costs/ledger'],
    ['schedules', '/schedules'],
    ['settings', '/settings'],
    ['webhooks', '/settings?tab=webhooks'],
  ];
}

test('a link signs in once, and its code is gone from the address', async () => {
  const { url, request } = studio.capstan;
  const { body } = await request<LoginLink>('POST', '/v1/login-links');
  const opened = await openPage(browser, url, {}, /401|400|404|422/);
  await opened.page.goto(body.url);
  await opened.page.getByRole('heading', { name: 'Home' }).waitFor();
  expect(opened.page.url()).toBe(`${url}/ui/`);
  const second = await openPage(browser, url, {}, /401|400|404|422/);
  await second.page.goto(body.url);
  await second.page.getByRole('alert').waitFor();
  await Promise.all([opened.close(), second.close()]);
});

test('a link may lead to a run, and to nowhere else', async () => {
  const { url, request } = studio.capstan;
  for (const [next, path] of [
    [`/runs/${studio.done}`, `/ui/runs/${studio.done}`],
    ['//evil.example', '/ui/'],
  ] as const) {
    const { body } = await request<LoginLink>('POST', '/v1/login-links');
    const link = new URL(body.url);
    link.searchParams.set('next', next);
    const opened = await openPage(browser, url, {}, /401/);
    await opened.page.goto(link.href);
    await opened.arrive(new RegExp(`^${path}$`));
    opened.expectQuiet();
    await opened.close();
  }
});

test('who is not signed in is asked to, and comes back to where they wanted to go', async () => {
  const { url, key } = studio.capstan;
  const opened = await openPage(browser, url, {}, /401/);
  const { page } = opened;
  await page.goto(`${url}/ui/runs/${studio.done}`);
  await page.getByLabel('Or paste an API key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'reel' }).waitFor();
  expect(new URL(page.url()).pathname).toBe(`/ui/runs/${studio.done}`);
  opened.expectQuiet();
  await opened.close();
});

test('a run under way moves by itself, and the same step is selected in every view', async () => {
  const opened = await visit();
  const { page } = opened;
  const id = await startRunOf(studio.capstan, { clips: ['a', 'b'], title: 'Live', rate: 44_100 });
  await opened.go(`/runs/${id}?step=join`);
  await page.getByRole('heading', { name: 'reel' }).getByText('succeeded').waitFor();
  await page.getByRole('tab', { name: 'Log' }).first().click();
  await page.getByRole('tab', { name: 'Timeline' }).click();
  await page.getByRole('complementary', { name: 'Step join' }).waitFor();
  expect(page.url()).toContain('step=join');
  const { cost_usd, finished_at } = await studio.capstan.ended(id);
  expect(cost_usd).toBeGreaterThan(0);
  const money = page.getByRole('img', { name: `Money in time: ${formatUsd(cost_usd)} spent, 0 USD held` });
  await money.waitFor();
  await opened.go(`/runs/${id}?view=timeline&at=${finished_at}`);
  await money.waitFor();
  opened.expectQuiet();
  await opened.close();
});

test("behind a run that goes on stands what today's plan expects of it, for everyone", async () => {
  const opened = await visit();
  const { page } = opened;
  await opened.go(`/runs/${studio.waiting}?view=timeline`);
  await page
    .getByText(
      /^By today's plan 1 step to come, for 0\.01 USD; (all ends in .* at the earliest|when all ends)/,
    )
    .waitFor();
  await page.getByText("to come, by today's plan", { exact: true }).waitFor();
  const lanes = page.getByRole('region', { name: 'Timeline' });
  await lanes.getByText(/by today's plan (next|in .*), for .*, 0\.01 USD/).waitFor();
  await lanes.getByTitle(/^(next|in .*), for .*, 0\.01 USD/).waitFor();
  const findings = await examine(opened);
  await page.getByLabel('Timeline by').selectOption('money');
  await lanes.getByText('~ 0.01').waitFor();
  await opened.turnTo('dark');
  await page.setViewportSize({ width: 390, height: 844 });
  expect([...findings, ...(await examine(opened))]).toEqual([]);
  opened.expectQuiet();
  await opened.close();
});

test('a person corrects an input with the keyboard, and the run goes on', { timeout: 180_000 }, async () => {
  const { capstan } = studio;
  const { waiting: id, review } = studio;
  const opened = await visit();
  const { page } = opened;
  await opened.go(`/reviews/${review}`);
  await page.getByRole('heading', { name: 'Your decision' }).waitFor();
  await page.keyboard.press('e');
  await page.getByRole('button', { name: 'JSON' }).click();
  await page.getByLabel('Input as JSON').fill('{ "rate": 48000 }');
  await page.locator('button:enabled', { hasText: 'Decide' }).focus();
  await page.keyboard.press('Enter');
  expect((await capstan.ended(id)).state).toBe('succeeded');
  opened.expectQuiet();
  await opened.close();
});

test('a pipeline is written, tried with mocks, stored and run without a command line', {
  timeout: 180_000,
}, async () => {
  const opened = await visit();
  const { page } = opened;
  await opened.go('/pipelines/new/edit?example=true');
  await page.getByRole('tab', { name: 'Try with mocks' }).click();
  await page.getByText(/succeeded, after .* of virtual time/).waitFor();
  await page.getByRole('button', { name: 'Store a version' }).click();
  await page.getByRole('button', { name: /^Store 1/ }).click();
  await page.getByRole('heading', { name: 'hello-reel' }).waitFor();
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  const clip = { name: 'clip.mp4', mimeType: 'video/mp4', buffer: Buffer.from('a film') };
  await page.getByLabel('A file for media_store_path').setInputFiles(clip);
  await page.getByText('6 bytes, video/mp4').waitFor();
  await page.getByRole('button', { name: 'Start the run' }).click();
  await opened.arrive(/\/ui\/runs\/run_/);
  opened.expectQuiet();
  await opened.close();
});

tellEditorStories(visit, () => studio.capstan);

tellProjectStories(visit, () => studio.capstan);

test('a step that waits for an instance says who was considered, and its run says it in the list', async () => {
  const { capstan } = studio;
  const far = [{ id: 'far', capability: 'trim', tags: ['moon'], wait_for_capability: '1h' }];
  const { run_id } = await capstan.submit(far);
  const opened = await visit();
  const { page } = opened;
  await opened.go('/runs');
  await page
    .getByRole('row', { name: run_id.slice(-8) })
    .getByText('waits for an instance')
    .waitFor();
  await opened.go(`/runs/${run_id}?step=far`);
  const why = page.getByRole('region', { name: 'Why it waits' });
  await why.getByRole('heading', { name: 'Ruled out' }).waitFor();
  expect(await why.getByRole('listitem').count()).toBe(2);
  await capstan.request('POST', `/v1/runs/${run_id}/cancel`, {});
  opened.expectQuiet();
  await opened.close();
});

test('keys go everywhere: the palette, and g with a letter', async () => {
  const opened = await visit();
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

test('another project sees nothing of the first', async () => {
  const { url, request } = studio.capstan;
  const { body: project } = await request<{ project_id: string }>('POST', '/v1/projects', { name: 'other' });
  const { body: key } = await request<{ key: string }>('POST', '/v1/keys', {
    name: 'other',
    scopes: ['admin'],
    projects: [project.project_id],
  });
  const opened = await visitAs(key.key, {}, /404/);
  await opened.go('/runs');
  await opened.page.getByText('No runs yet').waitFor();
  await opened.page.goto(`${url}/ui/runs/${studio.done}`);
  await opened.page.getByRole('alert').waitFor();
  opened.expectQuiet();
  await opened.close();
});

test('the page of a revoked key ends within five seconds', async () => {
  const { request } = studio.capstan;
  const { body: session } = await request<{ items: { project_id: string }[] }>('GET', '/v1/projects');
  const projects = session.items.slice(0, 1).map(({ project_id }) => project_id);
  const { body } = await request<{ key_id: string; key: string }>('POST', '/v1/keys', {
    name: 'guest',
    scopes: ['admin'],
    projects,
  });
  const opened = await visitAs(body.key, {}, /401|ERR_INCOMPLETE_CHUNKED/);
  await opened.go('/runs');
  await opened.page.getByText('live', { exact: true }).waitFor();
  await request('DELETE', `/v1/keys/${body.key_id}`);
  await opened.page.getByLabel('Or paste an API key').waitFor();
  opened.expectQuiet();
  await opened.close();
});

test('a lost stream is told of, and what was missed is there when it is back', {
  timeout: 180_000,
}, async () => {
  const opened = await visit({}, /ERR_INTERNET_DISCONNECTED|Failed to load/);
  const { page, context } = opened;
  await opened.go('/runs');
  await page.getByText('live', { exact: true }).waitFor();
  await context.setOffline(true);
  const id = await startRunOf(studio.capstan, { clips: ['a'], title: 'Missed', rate: 44_100 });
  await studio.capstan.ended(id);
  await context.setOffline(false);
  await page.getByTitle(id).waitFor();
  opened.expectQuiet();
  await opened.close();
});

test('a question is answered on a phone', { timeout: 180_000 }, async () => {
  const { capstan } = studio;
  const { run, review } = await askQuestion(capstan);
  const opened = await visit({ width: 390 });
  const { page } = opened;
  await opened.go(`/reviews/${review}`);
  await page.getByLabel('Output as JSON').fill('{ "published": true }');
  await page.getByRole('button', { name: 'Decide' }).click();
  expect((await capstan.ended(run)).output).toEqual({ publish: { published: true } });
  opened.expectQuiet();
  await opened.close();
});

test('the first page loads at most 150 kB', async () => {
  const opened = await visit();
  await opened.go('/');
  const loaded = (await opened.page.evaluate(
    'performance.getEntriesByType("resource").filter(({ name }) => /assets/.test(name)).map(({ name, encodedBodySize }) => [encodedBodySize, name])',
  )) as [number, string][];
  const bytes = loaded.reduce((sum, [size]) => sum + size, 0);
  expect(bytes).toBeGreaterThan(50_000);
  expect(bytes < 150_000 ? [] : loaded.toSorted(([one], [other]) => other - one)).toEqual([]);
  await opened.close();
});

/** What somebody would see amiss on a page: findings of axe, and what hangs over the edge of the screen. */
async function examine({ page, axe }: OpenPage): Promise<string[]> {
  const findings = await axe();
  const wide = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
  return wide > 0 ? [...findings, `${wide} px wider than the screen`] : findings;
}

/** Every page is loaded once, every other one in the dark, and then the lights are turned. */
test.each([{ width: 1280 }, { width: 390 }] as const)(
  'every page is drawn at $width px, light and dark, says nothing wrong, and can be used by everyone',
  { timeout: 120_000 },
  async ({ width }) => {
    const opened = await visit({ width });
    const findings: string[] = [];
    let themes: readonly Theme[] = ['light', 'dark'];
    for (const [name, path, complete] of listPages()) {
      await opened.go(path);
      if (complete !== undefined) await opened.page.getByText(complete).waitFor();
      for (const theme of themes) {
        await opened.turnTo(theme);
        const picture = `${name}-${theme}${width === 390 ? '-phone' : ''}`;
        findings.push(...(await examine(opened)).map((finding) => `${picture}: ${finding}`));
        await keepPicture(opened.page, picture);
      }
      themes = themes.toReversed();
    }
    expect(findings).toEqual([]);
    opened.expectQuiet();
    await opened.close();
  },
);

tellReviewStories(visitAs, () => studio.capstan);

// At last: it adds instances, which go again.
tellLearningStories(visitAs, () => studio.capstan);
