/**
 * Tabs that the tests of a worker use in turn: a new one compiles the page again, in processes that have to start. A
 * visitor that gets a tab finds nothing of the visitor before but the files of the page.
 */
import type { Browser } from 'playwright-core';
import { type Look, lookThrough, type OpenPage, openTab, sizeOf, type Tab } from './browser.ts';

const free = new Map<Browser, Tab[]>();
const lent = new Set<Tab>();

/** What tests listen to. */
const events = ['console', 'pageerror', 'request', 'response'] as const;

/** @param url of the site that the tab has been at, which may have stored something */
async function clean({ page, context }: Tab, url: string): Promise<void> {
  for (const event of events) page.removeAllListeners(event);
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await context.setOffline(false);
  // A page of the same site without a script: another site would be drawn by another process.
  await page.goto(`${url}/livez`);
  await page.evaluate('localStorage.clear(); sessionStorage.clear()');
  await context.clearCookies();
  await page.mouse.move(-1, -1);
  await page.emulateMedia({ colorScheme: 'light' });
}

export async function borrowPage(
  browser: Browser,
  url: string,
  look: Look = {},
  expected: RegExp | null = null,
): Promise<OpenPage> {
  if (look.setsClock === true) return lookThrough(await openTab(browser, look), url, expected);
  const rested = free.get(browser) ?? [];
  free.set(browser, rested);
  const tab = rested.pop() ?? (await openTab(browser));
  lent.add(tab);
  await tab.page.setViewportSize(sizeOf(look.width ?? 1280));
  const close = async (): Promise<void> => {
    await clean(tab, url);
    lent.delete(tab);
    rested.push(tab);
  };
  return { ...lookThrough(tab, url, expected), close };
}

/** Those that a failed test has left: their state is unknown. */
export async function closeLentTabs(): Promise<void> {
  await Promise.all([...lent].map(({ context }) => context.close()));
  lent.clear();
}
