/**
 * Why a ladder could not help: the input names a file that is not there. No level may change a reference, so what its
 * capability refused is refused for good. It is looked for only after a refusal: a capability may also be told, at a key
 * of its own, where to write.
 */
import { parseMediaReference } from '../../contracts/media.ts';
import type { Failure, JsonObject } from '../../contracts/primitives.ts';
import { findMediaPlaces } from '../../core/cache/media-places.ts';
import type { MediaLibrary } from '../media/media-library.ts';

const looksAtOnce = 16;

/** @returns the failure of a step whose input names a file to read that is not there; null = all are there */
export async function findMissingFile(
  media: Pick<MediaLibrary, 'exists'>,
  input: JsonObject,
  refusal: Failure,
): Promise<Failure | null> {
  const sources = Object.entries(findMediaPlaces(input)?.sources ?? {});
  for (let at = 0; at < sources.length; at += looksAtOnce) {
    const isThere = await Promise.all(
      sources.slice(at, at + looksAtOnce).map(async ([, reference]) => {
        const path = parseMediaReference(reference);
        return path === null || (await media.exists(path));
      }),
    );
    const missing = sources[at + isThere.indexOf(false)];
    if (isThere.includes(false) && missing !== undefined) return describeMissing(missing, refusal);
  }
  return null;
}

function describeMissing([pointer, reference]: readonly [string, string], refusal: Failure): Failure {
  const message = `${pointer}: there is no file ${reference}; was it uploaded?`;
  return {
    code: 'media_unknown',
    message: `${message} The call failed: ${refusal.message}`,
    details: { errors: [{ pointer, message }] },
  };
}
