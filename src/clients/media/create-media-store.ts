import { createFileMediaStore } from './file-store.ts';
import type { MediaStore } from './media-store.ts';

const scheme = 'file://';

/**
 * The media store behind `MEDIA_URL`.
 *
 * @param mediaUrl `file://DIR`. DIR is taken as written: spaces and percent signs stand for themselves, a relative
 *   DIR (`file://.capstan/media`) is relative to the working directory.
 * @throws Error for another scheme or an empty DIR
 */
export const createMediaStore = (mediaUrl: string): MediaStore => {
  const directory = mediaUrl.slice(scheme.length);
  if (mediaUrl.startsWith(scheme) && directory !== '') return createFileMediaStore(directory);
  throw new Error(
    `MEDIA_URL is ${JSON.stringify(mediaUrl)}; allowed is file://DIR (s3:// is planned, not built yet)`,
  );
};
