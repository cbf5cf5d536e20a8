/**
 * `npm run pictures:temporal` takes the pictures of an inline and of a queued run in Temporal's Web UI. A stack of its own
 * runs one pipeline of the template's capabilities until their calls are known to be short: its first runs are queued,
 * its last one is inline.
 */
import { fileURLToPath } from 'node:url';
import { Run } from '@capstan/core/contracts/run';
import type { Frame, Page } from 'playwright-core';
import { launchBrowser } from '../packages/console/test/support/browser.ts';
import { takePicture } from '../packages/console/test/support/pictures.ts';
import { type ApiClient, createApiClient, jsonBody } from '../src/cli/client/api-client.ts';
import { createPrinter } from '../src/dev/progress.ts';
import { startStack } from '../src/dev/stack.ts';
import { waitFor } from '../test/support/wait.ts';

const definition = {
  pipeline: 'captions',
  version: '1.0',
  steps: [
    { id: 'title', capability: 'shout', input: { text: '{{ job.title }}' } },
    { id: 'credits', capability: 'shout', input: { text: '{{ job.credits }}' } },
    { id: 'words', capability: 'count-words', input: { text: '{{ steps.title.output.text }}' } },
  ],
};
const job = { title: 'The sea', credits: 'filmed on the coast' };

async function runOnce(client: ApiClient): Promise<Run> {
  const { value } = await client.post('/v1/runs', Run, jsonBody({ definition, job }));
  const ended = await waitFor(`the end of ${value.run_id}`, async () => {
    const { value: run } = await client.get(`/v1/runs/${value.run_id}`, Run);
    return run.finished_at === null ? null : run;
  });
  if (ended.state !== 'succeeded') throw new Error(`${ended.run_id} ${ended.state}: ${ended.error?.message}`);
  return ended;
}

function isInline({ steps }: Run): boolean {
  return steps.every(({ inline }) => inline === true);
}

/** The router resets its counts of calls every few seconds. */
function runUntilInline(client: ApiClient): Promise<Run> {
  return waitFor('a run whose steps are all inline', async () => {
    const run = await runOnce(client);
    return isInline(run) ? run : null;
  });
}

/** Drawings move into their place: the page has settled when it looks the same twice. */
async function settle(page: Page): Promise<void> {
  let last: Buffer = Buffer.alloc(0);
  await waitFor('a page that stands still', async () => {
    const before = last;
    last = await page.screenshot();
    return last.equals(before);
  });
}

/** Markdown is in frames of its own, which are replaced while the page loads. */
async function waitForText(page: Page, text: string): Promise<void> {
  const isIn = (frame: Frame): Promise<boolean> =>
    frame
      .getByText(text)
      .first()
      .isVisible()
      .catch(() => false);
  await waitFor(`the text ${text}`, async () => {
    const shown = await Promise.all(page.frames().map(isIn));
    return shown.includes(true);
  });
}

type Tab = 'history' | 'user-metadata';

/** @param complete parts of texts that appear once the page is complete */
async function openTab(page: Page, { links }: Run, tab: Tab, complete: readonly string[]): Promise<void> {
  await page.goto(links.temporal ?? '');
  await page.waitForURL(/\/history$/);
  await page.goto(page.url().replace(/history$/, tab));
  for (const text of complete) await waitForText(page, text);
}

/** The table of steps, and the names of events. */
async function showMetadata(page: Page, inline: Run): Promise<void> {
  await page.setViewportSize({ width: 1280, height: 860 });
  const summary = '3 short steps: title, credits, then words';
  await openTab(page, inline, 'user-metadata', ['captions 1.0', 'count-words is inline: ', summary]);
}

const headerPx = 55;

/** The timeline, and the list of events with one line for each activity. */
async function showHistory(page: Page, queued: Run): Promise<void> {
  await page.setViewportSize({ width: 1280, height: 700 });
  const activities = definition.steps.map(({ id, capability }) => `${id} → ${capability}`);
  await openTab(page, queued, 'history', activities);
  await page.getByText('Compact', { exact: true }).click();
  await settle(page);
  const heading = await page.getByText('Event History', { exact: true }).boundingBox();
  await page.mouse.wheel(0, (heading?.y ?? headerPx) - headerPx);
}

async function takePictures(client: ApiClient): Promise<void> {
  await runOnce(client); // the first calls of a worker take longest
  const queued = await runOnce(client);
  if (isInline(queued)) throw new Error('the calls were known to be short too early');
  const inline = await runUntilInline(client);
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage({ locale: 'en-GB', timezoneId: 'UTC', reducedMotion: 'reduce' });
    page.setDefaultTimeout(60_000);
    await showMetadata(page, inline);
    await settle(page);
    await takePicture(page, 'temporal-inline');
    await showHistory(page, queued);
    await settle(page);
    await takePicture(page, 'temporal-queued');
  } finally {
    await browser.close();
  }
}

function template(name: string): string {
  return fileURLToPath(new URL(`../templates/init/${name}`, import.meta.url));
}

const { report, close } = createPrinter(process.stdout);
const stack = await startStack({
  dataDir: '',
  ephemeral: true,
  samples: false,
  port: 0,
  watch: [template('shout'), template('count-words')],
  environment: process.env,
  report,
});
try {
  const { api_url: url, api_key: key, project_id: project } = stack.info;
  await takePictures(createApiClient({ url, key, project }));
} finally {
  await stack.stop();
  close();
}
