/** Puts the files of a kept result where another call wants them, bytes checked. What is there already is left. */
import { type MediaPath, parseMediaReference } from '../../contracts/media.ts';
import type { Json } from '../../contracts/primitives.ts';
import type { MediaPlaces } from '../../core/cache/media-places.ts';
import { type KeptResult, relocate } from '../../core/cache/relocate.ts';
import type { CachedResultRow } from '../../db/cache/cached-result.ts';
import type { MediaLibrary } from '../media/media-library.ts';
import { digestOf } from './keyed-call.ts';

type Media = Pick<MediaLibrary, 'head' | 'copy'>;

/** @returns the output for the call that asked; null when a file is gone, or another one by now */
export async function placeResult(
  media: Media,
  { output, places, files }: Pick<CachedResultRow, 'output' | 'places' | 'files'>,
  asked: MediaPlaces,
): Promise<{ readonly output: Json } | null> {
  const kept = { output, places, files } as unknown as KeptResult;
  const relocation = relocate(kept, asked);
  for (const { reference, sha256 } of relocation.kept) {
    if ((await digestOf(media, reference)) !== sha256) return null;
  }
  for (const { from, to } of relocation.copies) {
    if (!(await copyFile(media, from, to))) return null;
  }
  return { output: relocation.output };
}

async function copyFile(
  media: Media,
  { reference, sha256 }: { readonly reference: string; readonly sha256: string },
  to: string,
): Promise<boolean> {
  if ((await digestOf(media, to)) === sha256) return (await digestOf(media, reference)) === sha256;
  return (await media.copy(readPath(reference), readPath(to), sha256)) !== null;
}

function readPath(reference: string): MediaPath {
  const path = parseMediaReference(reference);
  if (path === null) throw new RangeError(`${reference} is no media reference`);
  return path;
}
