/**
 * Moves whole files between a local path and the media store named by `MEDIA_URL`: through a Capstan API, which may
 * redirect to its bucket, or directly to a store.
 */
import { createReadStream, createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { formatMediaReference, type MediaPath, UploadTicket } from '@capstan/core/contracts/media';
import { withoutEndSlashes } from '@capstan/core/expression/language';
import { createMediaStore } from '@capstan/media-store/create-media-store';
import { describeLocal, RefusedTransfer, sendAnnounced } from './upload.ts';

/** Larger uploads are announced first: this costs one more request, and the bytes may go directly to a bucket. */
const announcedBytes = 1_048_576;

interface MediaApi {
  readonly baseUrl: string;
  readonly authorization: Readonly<Record<string, string>>;
}

function addressOf({ baseUrl }: MediaApi, path: MediaPath): string {
  return `${baseUrl}/v1/media/${path.job_id}/${path.file}`;
}

async function requireOk(response: Response, path: MediaPath): Promise<Response> {
  if (response.ok) return response;
  const { status } = response;
  const text = (await response.text()).slice(0, 500);
  throw new RefusedTransfer(`${formatMediaReference(path)}: the media store answered ${status}: ${text}`, {
    status,
    text,
  });
}

async function download(api: MediaApi, path: MediaPath, signal: AbortSignal): Promise<Response> {
  const init: RequestInit = { headers: api.authorization, redirect: 'manual', signal };
  const answer = await fetch(addressOf(api, path), init);
  const elsewhere = answer.status === 307 ? answer.headers.get('location') : null;
  if (elsewhere === null) return requireOk(answer, path);
  await answer.body?.cancel();
  // Without our key: the address itself grants access.
  return requireOk(await fetch(elsewhere, { redirect: 'error', signal }), path);
}

interface Sending extends FileToSend {
  readonly to: MediaPath;
  readonly signal: AbortSignal;
}

async function uploadSmall(api: MediaApi, { path, contentType, to, signal }: Sending): Promise<void> {
  const init: RequestInit & { readonly duplex: 'half' } = {
    method: 'PUT',
    redirect: 'error',
    headers: { ...api.authorization, 'content-type': contentType },
    body: Readable.toWeb(createReadStream(path)) as ReadableStream,
    duplex: 'half',
    signal,
  };
  await (await requireOk(await fetch(addressOf(api, to), init), to)).body?.cancel();
}

async function uploadAnnounced(api: MediaApi, { path, contentType, to, signal }: Sending): Promise<void> {
  const init: RequestInit = {
    method: 'POST',
    redirect: 'error',
    headers: { ...api.authorization, 'content-type': 'application/json' },
    body: JSON.stringify(await describeLocal(path, contentType)),
    signal,
  };
  const answer = await requireOk(await fetch(`${addressOf(api, to)}/upload`, init), to);
  const ticket = UploadTicket.parse(await answer.json());
  await sendAnnounced({ localPath: path, ticket, baseUrl: api.baseUrl, signal });
}

/** Transfers files through a Capstan API, or directly with its bucket if the API redirects. */
function createApiTransfer(mediaUrl: string, token: string | undefined): MediaTransfer {
  const api: MediaApi = {
    baseUrl: withoutEndSlashes(mediaUrl),
    authorization: token === undefined ? {} : { authorization: `Bearer ${token}` },
  };
  return {
    download: async (path, localPath, signal) => {
      const { body } = await download(api, path, signal);
      const source = body === null ? Readable.from([]) : Readable.fromWeb(body);
      await pipeline(source, createWriteStream(localPath, { flags: 'wx' }), { signal });
    },
    upload: async (file, path, signal) => {
      const { size } = await stat(file.path);
      await (size < announcedBytes ? uploadSmall : uploadAnnounced)(api, { ...file, to: path, signal });
    },
  };
}

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
 * @param mediaUrl the base address of a Capstan API, which requires `token`; or a store itself: `file://DIR`,
 * `s3://BUCKET/PREFIX?region=…`
 * @throws Error for any other scheme, or if the packages for S3 are missing
 */
export async function createMediaTransfer(
  mediaUrl: string,
  token: string | undefined,
): Promise<MediaTransfer> {
  return /^https?:\/\//.test(mediaUrl) ? createApiTransfer(mediaUrl, token) : createStoreTransfer(mediaUrl);
}

interface FileToSend {
  readonly path: string;
  readonly contentType: string;
}

/** Moves whole files between a local path and a media store. */
export interface MediaTransfer {
  /** @throws Error when there is no such object */
  download(path: MediaPath, localPath: string, signal: AbortSignal): Promise<void>;
  /** Replaces the object as a whole; an aborted upload keeps the previous object. */
  upload(file: FileToSend, path: MediaPath, signal: AbortSignal): Promise<void>;
}
