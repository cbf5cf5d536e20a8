/** Joins clips, which may differ in size, frame rate, sample rate and sound, into one mp4. */

import { defineCapability, MediaReference } from '@capstan/capability';
import { z } from 'zod';
import { asMp4, encodeAudio, encodeVideo } from '../media-tools/encoding.ts';
import { locateMediaTools, type MediaTools } from '../media-tools/locate.ts';
import { mediaTools } from '../media-tools/prerequisite.ts';
import { probeDurationMs, probeMedia } from '../media-tools/probe.ts';
import { inputFile, runWatchedFfmpeg } from '../media-tools/run-tool.ts';
import { type Clip, joinClips } from './filter-graph.ts';

async function readClip(
  tools: MediaTools,
  { path, reference }: { readonly path: string; readonly reference: string },
  signal: AbortSignal,
): Promise<Clip> {
  const facts = await probeMedia(tools, path, signal);
  if (facts.video === null) throw new Error(`${reference} has no picture`);
  if (facts.durationS === 0) throw new Error(`${reference} has no duration`);
  return { ...facts, video: facts.video };
}

export const capability = defineCapability({
  name: 'concat',
  version: '1.0.0',
  description: 'Joins clips in order into one H.264/AAC mp4 of the size and frame rate of the first clip.',
  input: z.object({
    clips: z
      .array(z.object({ media_store_path: MediaReference }))
      .min(1)
      .max(100),
    output_path: MediaReference,
  }),
  output: z.object({ output_path: z.string(), duration_ms: z.number().int().min(0) }),
  cost_model: { type: 'free', rate_usd: 0 },
  deterministic: true,
  tags: ['local', 'media'],
  prerequisites: [mediaTools],
  exec: async ({ clips, output_path }, { signal, media, cacheDir, progress, log }) => {
    const tools = await locateMediaTools(cacheDir);
    const paths: string[] = [];
    const read: Clip[] = [];
    for (const { media_store_path } of clips) {
      const path = await media.download(media_store_path);
      paths.push(path);
      read.push(await readClip(tools, { path, reference: media_store_path }, signal));
    }
    const [first, ...others] = read;
    if (first === undefined) throw new Error('there are no clips');
    const result = await media.temporaryPath('joined.mp4');
    const inputs = paths.flatMap((path) => inputFile(path));
    const graph = ['-filter_complex', joinClips([first, ...others]), '-map', '[v]', '-map', '[a]'];
    const seconds = read.reduce((sum, { durationS }) => sum + durationS, 0);
    const { width, height, frameRate } = first.video;
    log.info(
      `joins ${read.length} clips, ${seconds.toFixed(1)} s, as ${width}x${height} at ${frameRate} fps`,
    );
    const onSeconds = (done: number): void => progress(done / seconds, 'joining');
    const encode = [...inputs, ...graph, ...encodeVideo, ...encodeAudio, ...asMp4, result];
    await runWatchedFfmpeg(tools, encode, { signal, onSeconds });
    const duration_ms = await probeDurationMs(tools, result, signal);
    await media.upload(result, output_path, 'video/mp4');
    return { output_path, duration_ms };
  },
});
