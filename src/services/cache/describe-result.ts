/** What is kept of a call that was answered: the files that it has written and named, as they are now. */
import type { Json } from '../../contracts/primitives.ts';
import { listOutputFiles } from '../../core/cache/relocate.ts';
import type { MediaLibrary } from '../media/media-library.ts';
import { type CallKeys, digestOf } from './keyed-call.ts';

/**
 * @returns SHA-256 by reference; null when the output names a file that is not there, or not as a whole value, or when a
 * file that was read is another one by now: nobody can tell which of the two the call has seen
 */
export async function describeResult(
  media: Pick<MediaLibrary, 'head'>,
  output: Json,
  { places: { targets }, digests }: Pick<CallKeys, 'places' | 'digests'>,
): Promise<Readonly<Record<string, string>> | null> {
  const named = listOutputFiles(output);
  if (named === null) return null;
  const written = new Set(Object.values(targets));
  const files: Record<string, string> = {};
  for (const reference of new Set([...written, ...named, ...digests.keys()])) {
    const digest = await digestOf(media, reference);
    const read = written.has(reference) ? undefined : digests.get(reference);
    if (read !== undefined && digest !== read) return null;
    if (read !== undefined) continue; // it is part of the key
    if (digest !== null) files[reference] = digest;
    else if (named.has(reference)) return null;
  }
  return files;
}
