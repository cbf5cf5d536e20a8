/** Moves whole files between a local path and the media store that `MEDIA_URL` names. */
import { createReadStream, createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createMediaStore } from '../../clients/media/create-media-store.ts';
import { formatMediaReference, type MediaPath } from '../../contracts/media.ts';

export interface MediaTransfer {
  /** @throws Error when there is no such object */
  download(path: MediaPath, localPath: string, signal: AbortSignal): Promise<void>;
  /** Replaces the object as a whole; an aborted upload leaves what was there before. */
  upload(localPath: string, path: MediaPath, contentType: string, signal: AbortSignal): Promise<void>;
}

function createFileTransfer(mediaUrl: string): MediaTransfer {
  const store = createMediaStore(mediaUrl);
  return {
    download: async (path, localPath, signal) => {
      const file = await store.open(path);
      if (file === null) throw new Error(`${formatMediaReference(path)} does not exist`);
      await pipeline(file.read(), createWriteStream(localPath, { flags: 'wx' }), { signal });
    },
    upload: async (localPath, path, contentType, signal) => {
      const body = createReadStream(localPath, { signal });
      await store.put(path, body, { contentType, limitBytes: Number.POSITIVE_INFINITY });
    },
  };
}

function createHttpTransfer(baseUrl: string, token: string | undefined): MediaTransfer {
  const authorization: Record<string, string> =
    token === undefined ? {} : { authorization: `Bearer ${token}` };

  const send = async (path: MediaPath, init: RequestInit & { duplex?: 'half' }): Promise<Response> => {
    const url = `${baseUrl.replace(/(?<!\/)\/+$/, '')}/v1/media/${path.job_id}/${path.file}`;
    const response = await fetch(url, { redirect: 'error', ...init });
    if (response.ok) return response;
    await response.body?.cancel();
    throw new Error(`${formatMediaReference(path)}: the media store answered ${response.status}`);
  };

  return {
    download: async (path, localPath, signal) => {
      const { body } = await send(path, { headers: authorization, signal });
      const source = body === null ? Readable.from([]) : Readable.fromWeb(body);
      await pipeline(source, createWriteStream(localPath, { flags: 'wx' }), { signal });
    },
    upload: async (localPath, path, contentType, signal) => {
      const response = await send(path, {
        method: 'PUT',
        headers: { ...authorization, 'content-type': contentType },
        body: Readable.toWeb(createReadStream(localPath)) as ReadableStream,
        duplex: 'half',
        signal,
      });
      await response.body?.cancel();
    },
  };
}

/**
 * @param mediaUrl `file://DIR`, or the base address of a Capstan API, which wants `token`
 * @throws Error for any other scheme
 */
export function createMediaTransfer(mediaUrl: string, token: string | undefined): MediaTransfer {
  return /^https?:\/\//.test(mediaUrl) ? createHttpTransfer(mediaUrl, token) : createFileTransfer(mediaUrl);
}
