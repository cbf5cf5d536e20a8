/** Lays music under a video and normalises the loudness of the whole: two steps that always go together. */

import { defineCapability, type ExecContext, MediaReference } from '@capstan/capability';
import { z } from 'zod';
import { asMp4, encodeAudio, encodeVideo } from '../media-tools/encoding.ts';
import { locateMediaTools, type MediaTools } from '../media-tools/locate.ts';
import { mediaTools } from '../media-tools/prerequisite.ts';
import { probeDurationMs, probeMedia } from '../media-tools/probe.ts';
import { inputFile, runFfmpeg, runWatchedFfmpeg } from '../media-tools/run-tool.ts';
import { mixTracks } from './filter-graph.ts';
import { correctLoudness, type Measurement, measureLoudness, readMeasurement } from './loudness.ts';

const nowhere = ['-f', 'null', '-'];

interface Mix {
  readonly video: string;
  readonly music: string;
  /** Where the mixed video is written. */
  readonly result: string;
  readonly musicGainDb: number;
}

type MixWork = Pick<ExecContext, 'signal' | 'progress'>;

async function mix(tools: MediaTools, files: Mix, { signal, progress }: MixWork): Promise<void> {
  const facts = await probeMedia(tools, files.video, signal);
  if (facts.video === null) throw new Error('the video has no picture');
  if (facts.durationS === 0) throw new Error('the video has no duration');
  if (!(await probeMedia(tools, files.music, signal)).hasAudio) throw new Error('the music has no sound');
  const inputs = [...inputFile(files.video), ...inputFile(files.music, ['-stream_loop', '-1'])];
  const graph = (finish: string) => ['-filter_complex', mixTracks(facts, files.musicGainDb, finish)];
  const sound = ['-map', '[a]'];
  const measured = [...inputs, ...graph(measureLoudness), ...sound, ...nowhere];
  const printed = await runWatchedFfmpeg(tools, measured, {
    signal,
    onSeconds: (done) => progress((0.4 * done) / facts.durationS, 'measuring'),
  });
  const corrected = graph(correctLoudness(readMeasurement(printed)));
  const picture = ['-map', '0:v:0', ...(facts.video.codec === 'h264' ? ['-c:v', 'copy'] : encodeVideo)];
  const mixed = [...inputs, ...corrected, ...picture, ...sound, ...encodeAudio, ...asMp4, files.result];
  await runWatchedFfmpeg(tools, mixed, {
    signal,
    onSeconds: (done) => progress(0.4 + (0.6 * done) / facts.durationS, 'mixing'),
  });
}

async function measure(tools: MediaTools, path: string, signal: AbortSignal): Promise<Measurement> {
  const args = [...inputFile(path), '-map', '0:a:0', '-af', measureLoudness, ...nowhere];
  return readMeasurement(await runFfmpeg(tools, args, signal));
}

export const capability = defineCapability({
  name: 'audio-mix',
  version: '1.0.0',
  description:
    'Lays music under the sound of a video and normalises the result to -16 LUFS, at most -1.5 dBTP.',
  input: z.object({
    video: z.object({ media_store_path: MediaReference }),
    music: z.object({ media_store_path: MediaReference }),
    music_gain_db: z.number().min(-60).max(20).default(-12),
    output_path: MediaReference,
  }),
  output: z.object({
    output_path: z.string(),
    duration_ms: z.number().int().min(0),
    loudness_lufs: z.number(),
    true_peak_dbtp: z.number(),
  }),
  cost_model: { type: 'free', rate_usd: 0 },
  deterministic: true,
  tags: ['local', 'media'],
  prerequisites: [mediaTools],
  exec: async ({ video, music, music_gain_db, output_path }, { signal, media, cacheDir, progress }) => {
    const tools = await locateMediaTools(cacheDir);
    const files = {
      video: await media.download(video.media_store_path),
      music: await media.download(music.media_store_path),
      result: await media.temporaryPath('mixed.mp4'),
      musicGainDb: music_gain_db,
    };
    const { result } = files;
    await mix(tools, files, { signal, progress });
    const { input_i, input_tp } = await measure(tools, result, signal);
    const duration_ms = await probeDurationMs(tools, result, signal);
    await media.upload(result, output_path, 'video/mp4');
    return { output_path, duration_ms, loudness_lufs: input_i, true_peak_dbtp: input_tp };
  },
});
