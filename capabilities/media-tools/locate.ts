/**
 * Finds an ffmpeg and ffprobe that can do what the sample capabilities need: those of the system, those of the npm
 * packages next to the present file, those installed into the cache; the first that qualifies.
 */
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface MediaTools {
  readonly ffmpeg: string;
  readonly ffprobe: string;
}

const filters =
  'scale pad fps setsar setpts concat aresample aformat asetpts anullsrc apad atrim volume amix loudnorm'.split(
    ' ',
  );
const encoders = ['libx264', 'aac', 'mjpeg', 'png'];

const run = promisify(execFile);

/** @returns where `installMediaTools` puts the packages */
export function toolsFolder(cacheDir: string): string {
  return join(cacheDir, 'media-tools');
}

/** Names are the second column of `-filters` and `-encoders`. */
async function listNames(ffmpeg: string, option: string): Promise<ReadonlySet<string>> {
  const { stdout } = await run(ffmpeg, ['-hide_banner', option]);
  return new Set(stdout.split('\n').map((line) => line.trim().split(/\s+/)[1] ?? ''));
}

async function qualifies({ ffmpeg, ffprobe }: MediaTools): Promise<boolean> {
  try {
    await run(ffprobe, ['-version']);
    const knownFilters = await listNames(ffmpeg, '-filters');
    if (!filters.every((filter) => knownFilters.has(filter))) return false;
    const knownEncoders = await listNames(ffmpeg, '-encoders');
    return encoders.every((encoder) => knownEncoders.has(encoder));
  } catch {
    return false;
  }
}

/** The binaries inside `@ffmpeg-installer/ffmpeg` and `@ffprobe-installer/ffprobe`, as seen from a module. */
function fromPackages(from: string): MediaTools | null {
  const require = createRequire(from);
  try {
    return {
      ffmpeg: require('@ffmpeg-installer/ffmpeg').path,
      ffprobe: require('@ffprobe-installer/ffprobe').path,
    };
  } catch {
    return null;
  }
}

/** Null when there is none; `installMediaTools` helps. */
export async function findMediaTools(cacheDir: string): Promise<MediaTools | null> {
  const candidates = [
    { ffmpeg: 'ffmpeg', ffprobe: 'ffprobe' },
    fromPackages(import.meta.url),
    fromPackages(join(toolsFolder(cacheDir), 'package.json')),
  ];
  for (const candidate of candidates) {
    if (candidate !== null && (await qualifies(candidate))) return candidate;
  }
  return null;
}

/** @throws Error when there is none */
export async function locateMediaTools(cacheDir: string): Promise<MediaTools> {
  const tools = await findMediaTools(cacheDir);
  if (tools === null) throw new Error('no ffmpeg with the needed filters and encoders on this machine');
  return tools;
}
