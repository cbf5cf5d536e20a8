/** With PICTURES=1 the pages that tests look at are kept for the docs. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';

const folder = fileURLToPath(new URL('../../../docs/pictures', import.meta.url));

/** What the docs show. */
const shown: ReadonlySet<string> = new Set([
  'run-light',
  'run-step-dark',
  'run-timeline-light',
  'review-light-phone',
  'fleet-light',
  'editor-light',
]);

export async function keepPicture(page: Page, name: string): Promise<void> {
  if (process.env.PICTURES !== '1' || !shown.has(name)) return;
  await page.screenshot({ path: join(folder, `${name}.png`), animations: 'disabled' });
}
