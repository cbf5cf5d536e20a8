/**
 * A real Chromium, out of its package, on the page that a server gives. An error that the page logs, or a violation of
 * its policy, fails the test that opened it.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Browser, type BrowserContext, type Page, chromium as playwright } from 'playwright-core';
import { expect } from 'vitest';
import { provideChromium } from './chromium.ts';

export type Theme = 'light' | 'dark';

export type Width = 1280 | 390;

export type Rules = 'all' | 'colours' | 'sight';

/** The whole page, or what is within the frame that all pages have. */
export type Part = 'whole' | 'inner';

export interface Look {
  readonly width?: Width;
  /** The test sets the clock of the tab, which keeps it: no other test gets the tab. */
  readonly setsClock?: true;
}

export interface OpenPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Goes to an address below `/ui` and waits until it is drawn. */
  readonly go: (path: string) => Promise<void>;
  /** Goes there as a link within the page does: nothing is loaded again. */
  readonly walk: (path: string) => Promise<void>;
  /** Fails when the page has logged an error since it was opened. */
  readonly expectQuiet: () => void;
  /** Waits until the page itself has gone to an address: it is loaded once, so no other load is to be waited for. */
  readonly arrive: (path: RegExp) => Promise<void>;
  /** The system's theme changes under the open page. */
  readonly turnTo: (theme: Theme) => Promise<void>;
  /** The window is drawn to another size, and the page drawn again. */
  readonly resizeTo: (width: Width) => Promise<void>;
  /** Serious findings of axe, as text. @param rules what a theme or a width may break: the rest was looked at before */
  readonly axe: (rules?: Rules, part?: Part) => Promise<string[]>;
  readonly close: () => Promise<void>;
}

/** @param rules where names are found, as `--host-resolver-rules` of Chromium has it */
export async function launchBrowser(rules?: string): Promise<Browser> {
  const args = ['--no-sandbox', ...(rules === undefined ? [] : [`--host-resolver-rules=${rules}`])];
  return playwright.launch({ executablePath: await provideChromium(), args });
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface AxeFinding {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/** Of what axe runs by itself; the impact of a rule is that of each of its findings. A third of its rules have a lesser one. */
const seriousRules = `axe._audit.rules
  .filter(({ enabled, impact, tags }) => enabled && ['serious', 'critical'].includes(impact) && !tags.includes('experimental') && !tags.includes('deprecated'))
  .map(({ id }) => id)`;

/** Those of axe that a theme may break, and with a width of the screen. */
const colourRules = ['color-contrast', 'link-in-text-block'];
const sightRules = [...colourRules, 'scrollable-region-focusable'];

/** The frame around every page. */
const frameParts = ['aside:has(> nav)', 'header:has(~ #main)', 'nav[aria-label=Places]'];

async function runAxe(page: Page, rules: Rules, part: Part): Promise<string[]> {
  // Through the debugger: the policy of the page allows no script but its own. Once per document: it is half a megabyte.
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axeSource);
  const named = rules === 'colours' ? colourRules : sightRules;
  const runOnly = rules === 'all' ? seriousRules : JSON.stringify(named);
  const context = JSON.stringify({ include: ['html'], exclude: part === 'inner' ? frameParts : [] });
  const found = (await page.evaluate(
    `axe.run(${context}, { resultTypes: ['violations'], runOnly: ${runOnly} })`,
  )) as { violations: AxeFinding[] };
  return found.violations.flatMap(({ id, nodes }) =>
    nodes.slice(0, 5).map(({ html, failureSummary = '' }) => `${id}: ${html} ${failureSummary}`),
  );
}

export function sizeOf(width: Width): { readonly width: number; readonly height: number } {
  return { width, height: width === 390 ? 844 : 800 };
}

/** What is drawn listens to keys only after it has been painted. */
async function waitForPaint(page: Page): Promise<void> {
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => setTimeout(done)))');
}

async function waitUntilDrawn(page: Page): Promise<void> {
  await page.locator('main').waitFor();
  await page.getByText('Loading …').first().waitFor({ state: 'detached' });
  await page.getByLabel('Loading').first().waitFor({ state: 'detached' });
  await waitForPaint(page);
}

/** By the router of the page, which makes itself known to the tools of a developer. */
function walkTo(address: string): string {
  return `new Promise((done) => {
    const router = window.__TSR_ROUTER__;
    const forget = router.subscribe('onRendered', () => {
      forget();
      done();
    });
    router.history.push(${JSON.stringify(address)});
  })`;
}

/** A page, and what its site may keep. */
export type Tab = Pick<OpenPage, 'page' | 'context'>;

export async function openTab(browser: Browser, { width = 1280 }: Look = {}): Promise<Tab> {
  const context = await browser.newContext({
    viewport: sizeOf(width),
    colorScheme: 'light',
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'UTC',
  });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  return { page, context };
}

/** A busy server refuses sums after some seconds, and the page asks again: any test may see that. */
const busy = /status of 503 .*\/v1\/(costs|calls\/(health|summary)|runs\/(health|summary|count))\?/;

/** @param expected faults of the server that the test asks for */
export function lookThrough({ page, context }: Tab, url: string, expected: RegExp | null): OpenPage {
  const said: string[] = [];
  let theme: Theme = 'light';
  page.on('console', (message) => {
    if (message.type() === 'error') said.push(`${message.text()} ${message.location().url}`);
  });
  page.on('pageerror', (error) => said.push(String(error.stack)));
  return {
    page,
    context,
    go: async (path) => {
      await page.goto(`${url}/ui${path}`);
      await waitUntilDrawn(page);
    },
    walk: async (path) => {
      await page.evaluate(walkTo(`/ui${path}`));
      await waitUntilDrawn(page);
    },
    arrive: (path) => page.waitForURL((at) => path.test(at.pathname), { waitUntil: 'commit' }),
    turnTo: async (to) => {
      if (theme === to) return;
      theme = to;
      await page.emulateMedia({ colorScheme: theme });
      await page.locator(`html[data-theme=${theme}]`).waitFor();
    },
    resizeTo: async (to) => {
      if (page.viewportSize()?.width === to) return;
      await page.setViewportSize(sizeOf(to));
      await waitForPaint(page);
    },
    expectQuiet: () =>
      expect(said.filter((text) => expected?.test(text) !== true && !busy.test(text))).toEqual([]),
    axe: (rules = 'all', part = 'whole') => runAxe(page, rules, part),
    close: () => context.close(),
  };
}

/** In a tab of its own. @param expected faults of the server that the test asks for */
export async function openPage(
  browser: Browser,
  url: string,
  look: Look = {},
  expected: RegExp | null = null,
): Promise<OpenPage> {
  return lookThrough(await openTab(browser, look), url, expected);
}

/** Another tab of the same browser window. Its `close` closes it alone. */
export async function openBeside(
  { context }: OpenPage,
  url: string,
  expected: RegExp | null = null,
): Promise<OpenPage> {
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  return { ...lookThrough({ page, context }, url, expected), close: () => page.close() };
}

/** By the cookie that the login page would get. */
export async function signIn({ context }: OpenPage, url: string, key: string): Promise<void> {
  const answer = await context.request.post(`${url}/v1/session`, {
    data: { key },
    headers: { 'X-Capstan-Console': '1', Origin: url, 'Sec-Fetch-Site': 'same-origin' },
  });
  if (!answer.ok()) throw new Error(`POST /v1/session: ${answer.status()} ${await answer.text()}`);
}
