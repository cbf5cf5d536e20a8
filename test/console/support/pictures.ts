/** With PICTURES=1 the pages that tests look at are kept for the docs. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';

const folder = fileURLToPath(new URL('../../../docs/pictures', import.meta.url));

export async function keepPicture(page: Page, name: string): Promise<void> {
  if (process.env.PICTURES !== '1') return;
  await page.screenshot({ path: join(folder, `${name}.png`), animations: 'disabled' });
}
