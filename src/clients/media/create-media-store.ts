import { fileURLToPath } from 'node:url';
import { createFileMediaStore } from './file-store.ts';
import type { MediaStore } from './media-store.ts';

/**
 * The media store behind `MEDIA_URL`.
 *
 * @param mediaUrl a file URL (`file:///srv/my%20media`), or `file://DIR` with DIR relative to the working directory
 * @throws Error for another scheme or an empty DIR
 */
export function createMediaStore(mediaUrl: string): MediaStore {
  const directory = mediaUrl.startsWith('file:///')
    ? fileURLToPath(mediaUrl)
    : mediaUrl.replace(/^file:\/\//, '');
  if (mediaUrl.startsWith('file://') && directory !== '') return createFileMediaStore(directory);
  throw new Error(
    `MEDIA_URL is ${JSON.stringify(mediaUrl)}; allowed is file://DIR (s3:// is planned, not built yet)`,
  );
}
