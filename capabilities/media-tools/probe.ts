/** The facts of ffprobe about a media file, as far as the samples use them. */
import { z } from 'zod';
import type { MediaTools } from './locate.ts';
import { runFfprobe } from './run-tool.ts';

const Stream = z.object({
  codec_type: z.string().optional(),
  codec_name: z.string().optional(),
  width: z.number().optional(),
  height: z.number().optional(),
  duration: z.coerce.number().optional(),
  avg_frame_rate: z.string().optional(),
  tags: z.object({ rotate: z.coerce.number().optional() }).optional(),
  side_data_list: z.array(z.object({ rotation: z.number().optional() })).optional(),
});
type Stream = z.infer<typeof Stream>;

const Report = z.object({
  streams: z.array(Stream).default([]),
  format: z.object({ duration: z.coerce.number().optional() }).default({}),
});

export interface VideoFacts {
  readonly codec: string;
  /** Pixels as shown, after rotation. */
  readonly width: number;
  readonly height: number;
  /** A fraction as ffmpeg takes it: `30000/1001`. */
  readonly frameRate: string;
}

export interface MediaFacts {
  readonly durationS: number;
  readonly video: VideoFacts | null;
  readonly hasAudio: boolean;
}

function isTurned(stream: Stream): boolean {
  const rotation = stream.tags?.rotate ?? stream.side_data_list?.find((data) => data.rotation)?.rotation ?? 0;
  return Math.abs(rotation) % 180 === 90;
}

/** Variable and odd rates become 30. */
function readFrameRate(text: string | undefined): string {
  const [frames = 0, seconds = 0] = (text ?? '').split('/').map(Number);
  const rate = frames / seconds;
  return rate >= 1 && rate <= 120 ? `${frames}/${seconds}` : '30/1';
}

function readVideo(stream: Stream | undefined): VideoFacts | null {
  if (stream?.width === undefined || stream.height === undefined) return null;
  const { width, height } = stream;
  return {
    codec: stream.codec_name ?? 'unknown',
    width: isTurned(stream) ? height : width,
    height: isTurned(stream) ? width : height,
    frameRate: readFrameRate(stream.avg_frame_rate),
  };
}

/** @throws Error when the file is no media */
export async function probeMedia(tools: MediaTools, path: string, signal: AbortSignal): Promise<MediaFacts> {
  const { streams, format } = Report.parse(await runFfprobe(tools, path, signal));
  const video = streams.find((stream) => stream.codec_type === 'video');
  return {
    durationS: video?.duration ?? format.duration ?? 0,
    video: readVideo(video),
    hasAudio: streams.some((stream) => stream.codec_type === 'audio'),
  };
}

/** @returns milliseconds of the whole file @throws Error when ffprobe finds none */
export async function probeDurationMs(tools: MediaTools, path: string, signal: AbortSignal): Promise<number> {
  const { format } = Report.parse(await runFfprobe(tools, path, signal));
  if (format.duration === undefined) throw new Error('the result has no duration');
  return Math.round(format.duration * 1_000);
}
