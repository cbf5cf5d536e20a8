/** Takes one frame of a video as a JPEG or PNG. */
import { extname } from 'node:path';
import { defineCapability, MediaReference } from '@capstan/capability';
import { z } from 'zod';
import { locateMediaTools } from '../media-tools/locate.ts';
import { mediaTools } from '../media-tools/prerequisite.ts';
import { type MediaFacts, probeMedia } from '../media-tools/probe.ts';
import { inputFile, runFfmpeg } from '../media-tools/run-tool.ts';

/** Seconds; the middle unless asked otherwise, and never behind the last frame. */
function chooseMoment({ durationS, video }: MediaFacts, atMs: number | undefined): number {
  const [frames = 30, seconds = 1] = (video?.frameRate ?? '').split('/').map(Number);
  const lastFrame = Math.max(0, durationS - (1.5 * seconds) / frames);
  if (atMs === undefined) return Math.min(durationS / 2, lastFrame);
  if (atMs / 1_000 > durationS) {
    throw new Error(`at_ms is ${atMs}, but the video ends at ${Math.round(durationS * 1_000)}`);
  }
  return Math.min(atMs / 1_000, lastFrame);
}

const encoders = {
  jpeg: { options: ['-c:v', 'mjpeg', '-q:v', '3', '-pix_fmt', 'yuvj420p'], contentType: 'image/jpeg' },
  png: { options: ['-c:v', 'png'], contentType: 'image/png' },
} as const;

export const capability = defineCapability({
  name: 'thumbnail',
  version: '1.0.0',
  description: 'Takes one frame of a video as a JPEG or PNG, by the extension of output_path.',
  input: z.object({
    video: z.object({ media_store_path: MediaReference }),
    at_ms: z.number().min(0).optional(),
    width: z.number().int().min(16).max(7_680).optional(),
    output_path: MediaReference.regex(/\.(jpg|jpeg|png)$/, {
      error: 'expected a name that ends in .jpg or .png',
    }),
  }),
  output: z.object({
    output_path: z.string(),
    width: z.number().int().min(1),
    height: z.number().int().min(1),
  }),
  cost_model: { type: 'free', rate_usd: 0 },
  deterministic: true,
  tags: ['local', 'media'],
  prerequisites: [mediaTools],
  exec: async ({ video, at_ms, width, output_path }, { signal, media, cacheDir }) => {
    const tools = await locateMediaTools(cacheDir);
    const source = await media.download(video.media_store_path);
    const facts = await probeMedia(tools, source, signal);
    if (facts.video === null) throw new Error(`${video.media_store_path} has no picture`);
    const extension = extname(output_path);
    const { options, contentType } = extension === '.png' ? encoders.png : encoders.jpeg;
    const result = await media.temporaryPath(`thumbnail${extension}`);
    const moment = ['-ss', chooseMoment(facts, at_ms).toFixed(3)];
    const size = width === undefined ? [] : ['-vf', `scale=${width}:-1`];
    const frame = ['-map', '0:v:0', '-frames:v', '1', ...size, ...options, '-threads', '2', '-f', 'image2'];
    await runFfmpeg(tools, [...inputFile(source, moment), ...frame, '-update', '1', result], signal);
    const taken = (await probeMedia(tools, result, signal)).video;
    if (taken === null) throw new Error('ffmpeg wrote no picture');
    await media.upload(result, output_path, contentType);
    return { output_path, width: taken.width, height: taken.height };
  },
});
