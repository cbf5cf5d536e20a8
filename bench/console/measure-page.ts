/** What the browser sees: bytes, the first picture, frames. */

import { Run } from '@capstan/core/contracts/run';
import type { StackFile } from '@capstan/core/contracts/stack';
import type { Browser, Page } from 'playwright-core';
import { openPage, signIn } from '../../packages/console/test/support/browser.ts';
import type { RunMeasure } from './bars.ts';
import type { Submitted } from './runs.ts';
import { watch } from './watch.ts';

/** Notes when the first nodes are on the screen: the frame after the one that drew them. */
const notePicture = `(() => {
  const look = () => {
    if (document.querySelector('.react-flow canvas, .react-flow__node') === null) return requestAnimationFrame(look);
    requestAnimationFrame(() => { window.firstPicture = performance.now(); });
  };
  requestAnimationFrame(look);
})()`;

/** Without `waitForFunction`, which the policy of the page forbids. */
const waitForPicture = `new Promise((resolve) => {
  const look = () => (window.firstPicture === undefined ? requestAnimationFrame(look) : resolve(window.firstPicture));
  look();
})`;

export async function openSignedIn(browser: Browser, { api_url, api_key }: StackFile): Promise<Page> {
  const opened = await openPage(browser, api_url);
  opened.page.setDefaultTimeout(60_000);
  await signIn(opened, api_url, api_key);
  await opened.page.addInitScript(notePicture);
  await opened.go('/');
  return opened.page;
}

export async function measureFirstLoad(page: Page): Promise<number> {
  const sum =
    'performance.getEntriesByType("resource").filter(({ name }) => /assets/.test(name)).reduce((sum, one) => sum + one.encodedBodySize, 0)';
  return Number(await page.evaluate(sum));
}

async function countEnded({ api_url, api_key }: StackFile, runId: string): Promise<number> {
  const headers = { authorization: `Bearer ${api_key}` };
  const answer = await fetch(`${api_url}/v1/runs/${runId}`, { headers });
  return Run.parse(await answer.json()).steps.filter(({ finished_at }) => finished_at !== null).length;
}

const watchedMs = 5_000;

export async function measureRun(
  page: Page,
  info: StackFile,
  { runId, steps }: Submitted,
): Promise<RunMeasure> {
  await page.goto(`${info.api_url}/ui/runs/${runId}`);
  const first_picture_ms = Math.round(Number(await page.evaluate(waitForPicture)));
  const before = await countEnded(info, runId);
  const seen = await watch(page, () => page.waitForTimeout(watchedMs));
  const steps_ended = (await countEnded(info, runId)) - before;
  return { steps, first_picture_ms, steps_ended, ...seen };
}
