/** How every sample writes video: H.264 and AAC in an mp4 that plays before it is loaded to the end. */

export const encodeVideo: readonly string[] = [
  ...['-c:v', 'libx264', '-preset', 'veryfast', '-crf', '20', '-pix_fmt', 'yuv420p'],
];

export const encodeAudio: readonly string[] = ['-c:a', 'aac', '-b:a', '192k', '-ar', '48000', '-ac', '2'];

/** Options just before the path of the result. */
export const asMp4: readonly string[] = ['-threads', '2', '-movflags', '+faststart', '-f', 'mp4'];

/** One sample format for everything that is mixed or joined. */
export const commonAudio = 'aresample=48000,aformat=sample_fmts=fltp:channel_layouts=stereo';
