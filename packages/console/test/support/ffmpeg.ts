/** The ffmpeg that comes as a package. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const { path: ffmpeg } = createRequire(import.meta.url)('@ffmpeg-installer/ffmpeg') as { path: string };

export async function runFfmpeg(args: readonly string[]): Promise<void> {
  await promisify(execFile)(ffmpeg, ['-y', '-loglevel', 'error', ...args]);
}

const picture = '-f lavfi -i testsrc=s=64x64:r=10:d=1 -c:v libx264 -preset ultrafast -pix_fmt yuv420p';

async function makeFile(name: string, options: readonly string[]): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'capstan-film-'));
  try {
    const file = join(folder, name);
    await runFfmpeg([...options, file]);
    return await readFile(file);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** A second of a test picture in H.264. */
export function makeFilm(): Promise<Buffer> {
  return makeFile('film.mp4', picture.split(' '));
}

/** A test picture of 640 × 360 pixels. */
export function makePhoto(source: 'testsrc' | 'testsrc2'): Promise<Buffer> {
  return makeFile('photo.png', `-f lavfi -i ${source}=s=640x360 -frames:v 1`.split(' '));
}
