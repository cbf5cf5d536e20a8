/** Files by way of a Capstan API, and past it where it says so. */
import { createReadStream, createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { formatMediaReference, type MediaPath, UploadTicket } from '../../contracts/media.ts';
import { describeLocal, sendAnnounced } from './send-announced.ts';
import type { FileToSend, MediaTransfer } from './transfer.ts';
import { RefusedTransfer } from './transfer-faults.ts';

/** From this size on an upload is announced: one request more, and the bytes may go to a bucket at once. */
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
  // Without our key: the address allows it.
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

export function createApiTransfer(mediaUrl: string, token: string | undefined): MediaTransfer {
  const api: MediaApi = {
    baseUrl: mediaUrl.replace(/(?<!\/)\/+$/, ''),
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
