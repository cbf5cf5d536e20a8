/** With PICTURES=1 the pages that tests look at are kept for the docs. */
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import type { OpenPage } from './browser.ts';
import { runFfmpeg } from './ffmpeg.ts';

const folder = fileURLToPath(new URL('../../../../docs/pictures', import.meta.url));

/** Of these the docs show one picture. */
const single = [
  'run-light',
  'run-step-dark',
  'run-timeline-light',
  'review-light-phone',
  'fleet-light',
  'editor-light',
];
/** Of these a wide and light one, and a dark one of a phone. */
const paired = [
  'aliases',
  'cache',
  'call',
  'calls',
  'compare',
  'costs-crossed',
  'hooks',
  'reviews',
  'run-files',
];

const shown: ReadonlySet<string> = new Set([
  ...single,
  ...paired.flatMap((name) => [`${name}-light`, `${name}-dark-phone`]),
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

/** The open page as NAME-light and NAME-dark-phone; afterwards it is wide and light again. */
export async function keepBoth({ page, resizeTo, turnTo }: OpenPage, name: string): Promise<void> {
  if (!isTakingPictures()) return;
  await keepPicture(page, `${name}-light`);
  await resizeTo(390);
  await turnTo('dark');
  await keepPicture(page, `${name}-dark-phone`);
  await turnTo('light');
  await resizeTo(1280);
}

/** As docs/pictures/NAME.png. @param height of its upper part, in pixels; default: the whole window */
export async function takePicture(page: Page, name: string, height?: number): Promise<void> {
  const path = join(folder, `${name}.png`);
  const { width = 0, height: whole = 0 } = page.viewportSize() ?? {};
  const clip = { x: 0, y: 0, width, height: height ?? whole };
  await page.screenshot({ path, animations: 'disabled', clip });
  await reduceColours(path);
}
