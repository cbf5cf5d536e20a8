/** What the browser sees: bytes, the first picture, frames. */
import type { Browser, Page } from 'playwright-core';
import type { StackFile } from '../../src/contracts/stack.ts';
import { openPage, signIn } from '../../test/console/support/browser.ts';
import type { RunMeasure } from './bars.ts';

export async function openSignedIn(browser: Browser, { api_url, api_key }: StackFile): Promise<Page> {
  const opened = await openPage(browser, api_url);
  await signIn(opened, api_url, api_key);
  await opened.go('/');
  return opened.page;
}

export async function measureFirstLoad(page: Page): Promise<number> {
  const sum =
    'performance.getEntriesByType("resource").filter(({ name }) => /assets/.test(name)).reduce((sum, one) => sum + one.encodedBodySize, 0)';
  return Number(await page.evaluate(sum));
}

const watchedMs = 5_000;

const countFrames = `new Promise((resolve) => {
  const began = performance.now();
  let frames = 0;
  const next = (now) => {
    frames += 1;
    if (now - began >= ${watchedMs}) resolve((frames * 1000) / (now - began));
    else requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
})`;

export async function measureRun(
  page: Page,
  { api_url }: StackFile,
  { runId, steps }: { readonly runId: string; readonly steps: number },
): Promise<RunMeasure> {
  const began = performance.now();
  await page.goto(`${api_url}/ui/runs/${runId}`);
  await page.locator('.react-flow canvas, .react-flow__node').first().waitFor({ timeout: 60_000 });
  const first_picture_ms = Math.round(performance.now() - began);
  const frames_per_second = Math.round(Number(await page.evaluate(countFrames)));
  return { steps, first_picture_ms, frames_per_second };
}
