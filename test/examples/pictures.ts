/** With PICTURES=1 a page about the run of an example is kept as docs/pictures/NAME.png. */
import type { Page } from 'playwright-core';
import type { SharedCapstan } from '../support/shared-capstan.ts';

interface ExamplePicture {
  /** Below `/ui`. */
  readonly path: string;
  readonly name: string;
  readonly height?: number;
  /** Done on the page first. */
  readonly prepare?: (page: Page) => Promise<void>;
}

/** The whole graph of a run. */
export async function fitGraph(page: Page): Promise<void> {
  await page.getByRole('button', { name: /fit/i }).click();
}

export async function keepExamplePicture(
  { url, key }: SharedCapstan,
  { path, name, height = 640, prepare = fitGraph }: ExamplePicture,
): Promise<void> {
  if (process.env.PICTURES !== '1') return;
  const { launchBrowser, openPage, signIn } = await import('../console/support/browser.ts');
  const { provideConsole } = await import('../console/support/built-console.ts');
  const { takePicture } = await import('../console/support/pictures.ts');
  await provideConsole();
  const browser = await launchBrowser();
  try {
    const opened = await openPage(browser, url);
    await signIn(opened, url, key);
    await opened.go(path);
    await prepare(opened.page);
    await opened.page.waitForLoadState('networkidle').catch(() => undefined);
    await takePicture(opened.page, name, height);
    opened.expectQuiet();
  } finally {
    await browser.close();
  }
}
