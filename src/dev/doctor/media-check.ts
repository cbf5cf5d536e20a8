import { probeMediaStore } from '../../services/media/probe-media-store.ts';
import { type Check, type DoctorOptions, messageOf, missing, ok } from './check.ts';
import { readStack } from './stack-checks.ts';

/** The store that is named, or the running stack's; without either the stack makes a folder of its own. */
function findMediaUrl({ dataDir, environment }: DoctorOptions): string | undefined {
  return environment.MEDIA_URL || readStack(dataDir)?.media_url;
}

/** Tried, not looked at: what keys may do in a bucket is nowhere to be read. */
export async function checkMedia(options: DoctorOptions): Promise<Check> {
  const name = 'media store';
  try {
    const mediaUrl = findMediaUrl(options);
    if (mediaUrl === undefined) return ok(name, `a folder below ${options.dataDir} when the stack starts`);
    if (/^https?:\/\//.test(mediaUrl)) return ok(name, `the API at ${mediaUrl}, as capabilities use it`);
    return ok(name, `${await probeMediaStore(mediaUrl)}: a file was written, read and deleted`);
  } catch (error) {
    const remedy =
      'correct MEDIA_URL, or the keys and rights of its bucket: docs/operate.md, "Media in a bucket"';
    return missing(name, messageOf(error), remedy);
  }
}
