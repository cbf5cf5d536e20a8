/** With PICTURES=1 a page about the run of an example is kept as docs/pictures/NAME.png. */
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { SharedCapstan } from '../support/shared-capstan.ts';

interface ExamplePicture {
  /** Below `/ui`. */
  readonly path: string;
  readonly name: string;
  readonly width?: number;
  readonly height?: number;
  /** Done on the page first. */
  readonly prepare?: (page: Page) => Promise<void>;
}

/** The whole graph of a run, where it does not fit as it is. */
async function fitGraph(page: Page): Promise<void> {
  const view = page.locator('.react-flow__viewport');
  const before = await view.getAttribute('style');
  await page.getByRole('button', { name: /fit/i }).click();
  await expect.poll(() => view.getAttribute('style'), { timeout: 60_000 }).not.toBe(before);
}

export async function keepExamplePicture(
  { url, key }: SharedCapstan,
  { path, name, width = 1280, height = 640, prepare = fitGraph }: ExamplePicture,
): Promise<void> {
  if (process.env.PICTURES !== '1') return;
  const { launchBrowser, openPage, signIn } = await import('../../packages/console/test/support/browser.ts');
  const { provideConsole } = await import('../../packages/console/test/support/built-console.ts');
  const { takePicture } = await import('../../packages/console/test/support/pictures.ts');
  await provideConsole();
  const browser = await launchBrowser();
  try {
    const opened = await openPage(browser, url);
    await signIn(opened, url, key);
    await opened.page.setViewportSize({ width, height });
    await opened.go(path);
    await prepare(opened.page);
    await opened.page.waitForLoadState('networkidle').catch(() => undefined);
    await takePicture(opened.page, name);
    opened.expectQuiet();
  } finally {
    await browser.close();
  }
}
