/** With PICTURES=1 the run of an example is kept as docs/pictures/NAME.png. */
import type { SharedCapstan } from '../support/shared-capstan.ts';

export async function keepExamplePicture(
  { url, key }: SharedCapstan,
  path: string,
  name: string,
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
    await takePicture(opened.page, name, 640);
    opened.expectQuiet();
  } finally {
    await browser.close();
  }
}
