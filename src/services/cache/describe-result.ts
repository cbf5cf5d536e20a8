/** What is kept of a call that was answered: the files that it has written and named, as they are now. */
import type { MediaStore } from '../../clients/media/media-store.ts';
import type { Json } from '../../contracts/primitives.ts';
import type { MediaPlaces } from '../../core/cache/media-places.ts';
import { listOutputFiles } from '../../core/cache/relocate.ts';
import { digestOf } from './keyed-call.ts';

/** @returns SHA-256 by reference; null when the output names a file that is not there, or not as a whole value */
export async function describeResult(
  media: Pick<MediaStore, 'head'>,
  output: Json,
  { sources, targets }: MediaPlaces,
): Promise<Readonly<Record<string, string>> | null> {
  const named = listOutputFiles(output);
  if (named === null) return null;
  const written = new Set(Object.values(targets));
  const read = new Set(Object.values(sources));
  const files: Record<string, string> = {};
  for (const reference of new Set([...written, ...named])) {
    if (read.has(reference) && !written.has(reference)) continue; // it is part of the key
    const digest = await digestOf(media, reference);
    if (digest !== null) files[reference] = digest;
    else if (named.has(reference)) return null;
  }
  return files;
}
