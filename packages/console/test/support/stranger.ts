/** A person who has seen nothing of it yet, and follows the link that a start has printed. No command line. */
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { OpenPage } from './browser.ts';

/** What is asked of an `HTMLVideoElement`. */
interface Film {
  readonly readyState: number;
  readonly currentTime: number;
}

/** Signs in, and the film of the run is played by one click. */
export async function followLink({ page, arrive }: OpenPage, link: string): Promise<void> {
  await page.goto(link);
  await arrive(/\/ui\/runs\/run_/);
  await page.getByRole('button', { name: 'play' }).click();
  const film = page.locator('video');
  await film.waitFor();
  const look = ({ readyState, currentTime }: Film) => readyState >= 3 && currentTime > 0.5;
  await expect.poll(() => film.evaluate(look), { timeout: 60_000 }).toBe(true);
}

async function writeFromExample(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'Pipelines' }).first().click();
  await page.getByRole('link', { name: 'New pipeline' }).click();
  await page.getByText('Checked against the current fleet').waitFor();
  await page.getByRole('tab', { name: 'Plan' }).click();
  await page.getByText('Within the budget of $1.00').waitFor();
  await page.getByRole('tab', { name: 'Try with mocks' }).click();
  await page.getByText(/succeeded, after .* of virtual time/).waitFor();
  await page.getByRole('button', { name: 'Save version' }).click();
  await page.getByRole('button', { name: /^Save 1/ }).click();
  await page.getByRole('heading', { name: 'hello-reel' }).waitFor();
}

/** A pipeline from the example, checked, priced, tried and stored; then run with a film, and approved. */
export async function writeAndRun({ page, arrive }: OpenPage, film: string): Promise<void> {
  await writeFromExample(page);
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByLabel('A file for media_store_path').setInputFiles(film);
  await page.getByText(/ [kM]B, video\/mp4$/).waitFor();
  await page.getByRole('button', { name: 'Start run' }).click();
  await arrive(/\/ui\/runs\/run_/);
  const run = new URL(page.url()).pathname.slice('/ui'.length);
  await page.getByText('Waiting for review: publish').waitFor();
  await page
    .getByRole('link', { name: /^Reviews/ })
    .first()
    .click();
  await page.getByRole('link', { name: /May it be published/ }).click();
  await page.getByLabel('Output as JSON').fill('{ "approved": true }');
  await page.locator('button:enabled', { hasText: 'Submit' }).click();
  await arrive(/\/ui\/reviews$/);
  await page.goto(`${new URL(page.url()).origin}/ui${run}`);
  await page.getByRole('heading', { name: 'hello-reel' }).getByText('succeeded').waitFor();
}
