/** With PICTURES=1 the pages that tests look at are kept for the docs. */
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { runFfmpeg } from './ffmpeg.ts';

const folder = fileURLToPath(new URL('../../../../docs/pictures', import.meta.url));

/** What the docs show. */
const shown: ReadonlySet<string> = new Set([
  'run-light',
  'run-step-dark',
  'run-timeline-light',
  'review-light-phone',
  'fleet-light',
  'calls-light',
  'editor-light',
  'reviews-light',
  'costs-crossed-light',
  'costs-crossed-light-phone',
  'run-files-light',
  'compare-light',
  'cache-light',
  'call-light',
  'call-dark-phone',
  'aliases-light',
  'hooks-light',
  'hooks-dark-phone',
  'calls-dark-phone',
]);

/** Each step of the learning demonstration, by each way. */
const ofLearning = 'learning-';

export function isTakingPictures(): boolean {
  return process.env.PICTURES === '1';
}

const palette = 'split[a][b];[a]palettegen=max_colors=160[p];[b][p]paletteuse=dither=none';

/** A page has few: with a palette of them a picture is a third as large. */
async function reduceColours(path: string): Promise<void> {
  const reduced = `${path}.reduced.png`;
  await runFfmpeg(['-i', path, '-filter_complex', palette, reduced]);
  await rename(reduced, path);
}

export async function keepPicture(page: Page, name: string): Promise<void> {
  if (!isTakingPictures() || !(shown.has(name) || name.startsWith(ofLearning))) return;
  await takePicture(page, name);
}

/** As docs/pictures/NAME.png. @param height of its upper part, in pixels; default: the whole window */
export async function takePicture(page: Page, name: string, height?: number): Promise<void> {
  const path = join(folder, `${name}.png`);
  const { width = 0, height: whole = 0 } = page.viewportSize() ?? {};
  const clip = { x: 0, y: 0, width, height: height ?? whole };
  await page.screenshot({ path, animations: 'disabled', clip });
  await reduceColours(path);
}
