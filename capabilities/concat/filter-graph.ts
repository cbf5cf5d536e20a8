/**
 * The graph that joins clips of any size, rate and sound: each is fitted into the first one's frame at its rate, and
 * its sound is made exactly as long as its picture (silence where there is none), so nothing drifts.
 */
import { commonAudio } from '../media-tools/encoding.ts';
import type { MediaFacts, VideoFacts } from '../media-tools/probe.ts';

export type Clip = MediaFacts & { readonly video: VideoFacts };

/** H.264 wants even sizes. */
function even(pixels: number): number {
  return Math.max(2, Math.round(pixels / 2) * 2);
}

function videoChain(frame: VideoFacts, index: number): string {
  const [width, height] = [even(frame.width), even(frame.height)];
  return [
    `[${index}:v:0]setpts=PTS-STARTPTS`,
    `scale=${width}:${height}:force_original_aspect_ratio=decrease`,
    `pad=${width}:${height}:(ow-iw)/2:(oh-ih)/2`,
    'setsar=1',
    `fps=${frame.frameRate}`,
    `format=yuv420p[v${index}]`,
  ].join(',');
}

function audioChain(clip: Clip, index: number): string {
  const length = `atrim=duration=${clip.durationS.toFixed(6)}[a${index}]`;
  if (!clip.hasAudio) return `anullsrc=r=48000:cl=stereo,${commonAudio},${length}`;
  return `[${index}:a:0]asetpts=PTS-STARTPTS,${commonAudio},apad,${length}`;
}

/** Inputs are the clips in order; outputs are `[v]` and `[a]`. */
export function joinClips(clips: readonly [Clip, ...Clip[]]): string {
  const chains = clips.flatMap((clip, index) => [videoChain(clips[0].video, index), audioChain(clip, index)]);
  const pairs = clips.map((_, index) => `[v${index}][a${index}]`).join('');
  return `${chains.join(';')};${pairs}concat=n=${clips.length}:v=1:a=1[v][a]`;
}
