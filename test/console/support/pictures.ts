/** With PICTURES=1 the pages that tests look at are kept for the docs. */
import { execFile } from 'node:child_process';
import { rename } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
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

/** Each step of the learning demonstration, by each way. */
const ofLearning = 'learning-';

export function isTakingPictures(): boolean {
  return process.env.PICTURES === '1';
}

const palette = 'split[a][b];[a]palettegen=max_colors=160[p];[b][p]paletteuse=dither=none';

/** A page has few: with a palette of them a picture is a third as large. */
async function reduceColours(path: string): Promise<void> {
  const { path: ffmpeg } = createRequire(import.meta.url)('@ffmpeg-installer/ffmpeg') as { path: string };
  const reduced = `${path}.reduced.png`;
  await promisify(execFile)(ffmpeg, [
    '-y',
    '-loglevel',
    'error',
    '-i',
    path,
    '-filter_complex',
    palette,
    reduced,
  ]);
  await rename(reduced, path);
}

export async function keepPicture(page: Page, name: string): Promise<void> {
  if (!isTakingPictures() || !(shown.has(name) || name.startsWith(ofLearning))) return;
  const path = join(folder, `${name}.png`);
  await page.screenshot({ path, animations: 'disabled' });
  await reduceColours(path);
}
