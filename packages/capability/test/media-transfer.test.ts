import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createMediaTransfer } from '../src/media/media-transfer.ts';
import { aFolder } from './support/folders.ts';

/** `/v1/media` of the API, in memory. */
async function startMediaApi() {
  const objects = new Map<string, { bytes: Buffer; type: string | undefined }>();
  const server = createServer(async (request, response) => {
    if (request.headers.authorization !== 'Bearer key') return response.writeHead(401).end();
    const bytes = Buffer.concat(await request.toArray());
    const path = request.url ?? '';
    if (request.method === 'PUT') {
      objects.set(path, { bytes, type: request.headers['content-type'] });
      return response.writeHead(201).end('{}');
    }
    const found = objects.get(path);
    return response.writeHead(found === undefined ? 404 : 200).end(found?.bytes);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, objects, close };
}

it('moves files through a Capstan API with the key of the router', async () => {
  const api = await startMediaApi();
  const folder = await aFolder();
  const transfer = await createMediaTransfer(api.url, 'key');
  const { signal } = new AbortController();
  const path = { job_id: 'job_1', file: 'parts/a.bin' };
  const bytes = Buffer.alloc(300_000, 'capstan');
  await writeFile(join(folder, 'in'), bytes);

  await transfer.upload({ path: join(folder, 'in'), contentType: 'video/mp4' }, path, signal);
  const stored = api.objects.get('/v1/media/job_1/parts/a.bin');
  expect(stored?.type).toBe('video/mp4');
  expect(stored?.bytes.equals(bytes)).toBe(true);
  await transfer.download(path, join(folder, 'out'), signal);
  expect((await readFile(join(folder, 'out'))).equals(bytes)).toBe(true);

  const missing = transfer.download({ job_id: 'job_1', file: 'none' }, join(folder, 'none'), signal);
  await expect(missing).rejects.toThrow('media://job_1/none: the media store answered 404');
  api.close();
});

it('refuses other schemes', async () => {
  await expect(createMediaTransfer('ftp://host', 'key')).rejects.toThrow(/file:\/\/DIR/);
});
