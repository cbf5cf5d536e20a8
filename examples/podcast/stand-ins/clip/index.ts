/** Cuts a part out of a WAV file, to the sample. */
import { CallFailure, defineCapability, MediaReference } from '@capstan/capability';
import { z } from 'zod';
import { readWav, secondsOf, writeWav } from '../../../stand-ins/wav.ts';

export const capability = defineCapability({
  name: 'audio-clip',
  version: '1.0.0',
  description: 'Cuts a part out of a WAV file.',
  input: z.object({
    audio: MediaReference,
    start_s: z.number().min(0),
    end_s: z.number().min(0),
    output_path: MediaReference,
  }),
  output: z.object({ output_path: z.string(), duration_s: z.number() }),
  cost_model: { type: 'free', rate_usd: 0 },
  deterministic: true,
  tags: ['local', 'stand-in'],
  max_concurrency: 4,
  exec: async ({ audio, start_s, end_s, output_path }, { media }) => {
    const sound = await readWav(await media.download(audio));
    const { rate } = sound;
    if (start_s >= end_s || start_s >= secondsOf(sound)) {
      const seen = `from ${start_s} to ${end_s} of ${secondsOf(sound)} s`;
      throw new CallFailure(422, `end_s: expected a part that lies in the file, got ${seen}`);
    }
    const [from, to] = [Math.round(start_s * rate), Math.round(end_s * rate)];
    const part = { rate, channels: sound.channels.map((samples) => samples.subarray(from, to)) };
    const result = await media.temporaryPath('clip.wav');
    await writeWav(result, part);
    await media.upload(result, output_path, 'audio/wav');
    return { output_path, duration_s: Number(secondsOf(part).toFixed(3)) };
  },
});
