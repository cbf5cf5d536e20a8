/** Moves whole files between a local path and the media store that `MEDIA_URL` names. */
import { createReadStream, createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createMediaStore } from '../../clients/media/create-media-store.ts';
import { formatMediaReference } from '../../contracts/media.ts';
import { createApiTransfer } from './api-transfer.ts';
import type { MediaTransfer } from './transfer.ts';

async function createStoreTransfer(mediaUrl: string): Promise<MediaTransfer> {
  const store = await createMediaStore(mediaUrl);
  return {
    download: async (path, localPath, signal) => {
      const file = await store.open(path);
      if (file === null) throw new Error(`${formatMediaReference(path)} does not exist`);
      await pipeline(await file.read(), createWriteStream(localPath, { flags: 'wx' }), { signal });
    },
    upload: async ({ path: localPath, contentType }, path, signal) => {
      const { size: limitBytes } = await stat(localPath);
      await store.put(path, createReadStream(localPath, { signal }), { contentType, limitBytes });
    },
  };
}

/**
 * @param mediaUrl the base address of a Capstan API, which wants `token`; or a store itself: `file://DIR`,
 * `s3://BUCKET/PREFIX?region=…`
 * @throws Error for any other scheme, or where the packages for S3 are missing
 */
export async function createMediaTransfer(
  mediaUrl: string,
  token: string | undefined,
): Promise<MediaTransfer> {
  return /^https?:\/\//.test(mediaUrl) ? createApiTransfer(mediaUrl, token) : createStoreTransfer(mediaUrl);
}
