import { fileURLToPath } from 'node:url';
import { ConfigurationError } from '@capstan/core/errors/start-errors';
import { createFileMediaStore } from './file-store.ts';
import type { MediaStore } from './media-store.ts';
import { openS3MediaStore } from './s3-store.ts';

/**
 * The media store behind `MEDIA_URL`.
 *
 * @param mediaUrl a file URL (`file:///srv/my%20media`), `file://DIR` with DIR relative to the working directory, or
 * `s3://BUCKET/PREFIX?region=…&endpoint=…&path_style=true`
 * @throws Error for another scheme, an empty DIR or bucket, or where the packages for S3 are missing
 */
export async function createMediaStore(mediaUrl: string): Promise<MediaStore> {
  if (mediaUrl.startsWith('s3://')) return openS3MediaStore(mediaUrl);
  const directory = mediaUrl.startsWith('file:///')
    ? fileURLToPath(mediaUrl)
    : mediaUrl.replace(/^file:\/\//, '');
  if (mediaUrl.startsWith('file://') && directory !== '') return createFileMediaStore(directory);
  throw new ConfigurationError(
    `MEDIA_URL is ${JSON.stringify(mediaUrl)}; allowed are file://DIR and s3://BUCKET/PREFIX?region=…`,
  );
}
