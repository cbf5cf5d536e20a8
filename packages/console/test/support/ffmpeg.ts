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

/** A second of a test picture in H.264. */
export async function makeFilm(): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'capstan-film-'));
  try {
    const file = join(folder, 'film.mp4');
    await runFfmpeg([...picture.split(' '), file]);
    return await readFile(file);
  } finally {
    await rm(folder, { recursive: true });
  }
}
