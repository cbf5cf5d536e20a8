/** Signing in at a provider of another site, in a real browser, which keeps the rules of cookies. */
import { symlink } from 'node:fs/promises';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../../../../test/support/api.ts';
import { clientSecret, startProvider, type TestProvider } from '../../../../test/support/openid-provider.ts';
import { launchBrowser, type OpenPage } from '../support/browser.ts';
import { provideConsole } from '../support/built-console.ts';
import { borrowPage, closeLentTabs } from '../support/kept-tabs.ts';

const site = 'http://capstan.test';

let provider: TestProvider;
let api: TestApi;
let browser: Browser;

beforeAll(async () => {
  const builtConsole = await provideConsole();
  provider = await startProvider();
  api = await startTestApi({
    OIDC_ISSUER: provider.issuer,
    OIDC_CLIENT_ID: 'capstan',
    OIDC_CLIENT_SECRET: clientSecret,
    OIDC_GROUPS: '{"viewers": {"role": "viewer", "projects": ["default"]}}',
    OIDC_NAME: 'Example',
  });
  provider.serve(site, api.url);
  provider.accounts.set('vera', { name: 'Vera Viewer', email: 'vera@example.org', groups: ['viewers'] });
  provider.accounts.set('nora', { name: 'Nora', email: 'nora@example.org', groups: [] });
  await symlink(builtConsole, api.consoleFolder);
  browser = await launchBrowser(`MAP capstan.test 127.0.0.1:${new URL(api.url).port}`);
});
afterAll(async () => {
  await closeLentTabs();
  await browser?.close();
  await api?.close();
  await provider?.close();
});

async function passPages(page: Page, sub: string): Promise<void> {
  await page.locator('input[name=login]').fill(sub);
  await page.locator('input[name=password]').fill('x');
  await page.getByRole('button', { name: 'Sign-in' }).click();
  await page.getByRole('button', { name: 'Continue' }).click();
}

async function begin(sub: string): Promise<OpenPage> {
  const opened = await borrowPage(browser, site, {}, /401|503|Cross-Origin-Opener-Policy|fonts\.googleapis/);
  await opened.page.goto(`${site}/ui/costs`);
  await opened.page.getByRole('link', { name: 'Sign in with Example' }).click();
  await passPages(opened.page, sub);
  return opened;
}

test('a sign-in leads back to the page that was asked for, and names the person', async () => {
  const opened = await begin('vera');
  const { page, arrive } = opened;
  await arrive(/^\/ui\/costs$/);
  await page.getByText('Signed in as Vera Viewer').waitFor();
  const cookies = await opened.context.cookies(site);
  expect(cookies).toMatchObject([{ name: 'capstan_session', sameSite: 'Strict', httpOnly: true }]);
  await page.reload();
  await page.getByText('Signed in as Vera Viewer').waitFor();
  opened.expectQuiet();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.waitForURL(/\/session\/end/);
  await opened.close();
});

test('a failed sign-in shows the reason, and offers to begin again', async () => {
  const { page, arrive, axe, close } = await begin('nora');
  await arrive(/^\/ui\/login$/);
  await page.getByRole('alert').getByText('none of your groups gives access here').waitFor();
  await page.getByRole('link', { name: 'Sign in with Example' }).waitFor();
  expect(await axe()).toEqual([]);
  await page.goto(`${site}/ui/login?refused=%3Cb%3E`);
  await page.getByRole('alert').getByText('You were not signed in.').waitFor();
  await close();
});

test('a link of another key asks before it replaces the session of a person', async () => {
  const linkOf = async (name: string): Promise<string> => {
    const body = { name, scopes: ['admin'], projects: [api.projectId] };
    const { key } = (await (await api.call('/v1/keys', { body })).json()) as { key: string };
    const headers = { authorization: `Bearer ${key}` };
    const link = await api.call('/v1/login-links', { method: 'POST', headers });
    return `${site}/ui/login${new URL(((await link.json()) as { url: string }).url).hash}`;
  };
  const { page, arrive, close } = await borrowPage(
    browser,
    site,
    {},
    /401|409|503|Cross-Origin-Opener-Policy/,
  );
  await page.goto(await linkOf('mine'));
  await arrive(/^\/ui\/$/);
  await page.getByText('Signed in as mine').waitFor();
  await page.goto(await linkOf('theirs'));
  await page.getByText('You are signed in as mine').waitFor();
  await page.getByRole('button', { name: 'Stay mine' }).click();
  await page.getByText('Signed in as mine').waitFor();
  await page.goto(await linkOf('theirs'));
  await page.getByRole('button', { name: 'Sign in as theirs' }).click();
  await page.getByText('Signed in as theirs').waitFor();
  await close();
});
