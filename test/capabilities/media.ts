/** Tiny media made by ffmpeg, and a sample capability served over a store of its own. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Capability } from '@capstan/capability';
import { readReference } from '@capstan/capability/media/call-media';
import { createMediaTransfer } from '@capstan/capability/media/media-transfer';
import { locateMediaTools } from '../../capabilities/media-tools/locate.ts';
import { probeMedia } from '../../capabilities/media-tools/probe.ts';
import { runFfmpeg } from '../../capabilities/media-tools/run-tool.ts';
import { exec, serve } from '../../packages/capability/test/support/capabilities.ts';

const never = new AbortController().signal;

/** `make(reference, ffmpegArguments)` puts a file there; `exec` calls the capability. */
export async function startSample(capability: Capability) {
  const folder = await mkdtemp(join(tmpdir(), 'capstan sample-'));
  const tools = await locateMediaTools(folder);
  const transfer = await createMediaTransfer(`file://${join(folder, 'store')}`, undefined);
  const instance = await serve(capability, { MEDIA_URL: `file://${join(folder, 'store')}` });
  let files = 0;
  const localPath = (reference: string): string => {
    files += 1;
    return join(folder, `${files}-${reference.split('/').at(-1)}`);
  };
  return {
    url: instance.endpoint,
    exec: (input: unknown) => exec(instance, input),
    make: async (reference: string, args: string): Promise<void> => {
      const path = localPath(reference);
      await runFfmpeg(tools, [...args.split(' '), path], never);
      const file = { path, contentType: 'application/octet-stream' };
      await transfer.upload(file, readReference(reference), never);
    },
    /** A local copy of an object. */
    fetch: async (reference: string): Promise<string> => {
      const path = localPath(reference);
      await transfer.download(readReference(reference), path, never);
      return path;
    },
    probe: (path: string) => probeMedia(tools, path, never),
    ffmpeg: (args: readonly string[]) => runFfmpeg(tools, args, never),
    close: async (): Promise<void> => {
      await instance.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export type Sample = Awaited<ReturnType<typeof startSample>>;
