/**
 * The graph that lays music under a video's own sound. The music repeats when it is shorter and ends with the
 * picture. amix of the oldest supported ffmpeg halves both tracks alike; loudnorm restores the level.
 */
import { commonAudio } from '../media-tools/encoding.ts';
import type { MediaFacts } from '../media-tools/probe.ts';

/** Input 0 is the video, input 1 the endless music; the output is `[a]`. @param finish the last filter */
export function mixTracks(video: MediaFacts, musicGainDb: number, finish: string): string {
  const length = `atrim=duration=${video.durationS.toFixed(6)}`;
  const music = `[1:a:0]${commonAudio},volume=${musicGainDb}dB,${length}`;
  if (!video.hasAudio) return `${music},${finish}[a]`;
  const own = `[0:a:0]asetpts=PTS-STARTPTS,${commonAudio},apad,${length}[own]`;
  return `${own};${music}[music];[own][music]amix=inputs=2:duration=longest:dropout_transition=0,${finish}[a]`;
}
