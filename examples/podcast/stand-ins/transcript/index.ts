/**
 * Answers with a transcript that we wrote, spread over the length of the file. It has the schemas of a wrapped Whisper
 * server, and the price of a hosted one.
 */
import { CallFailure, defineCapability, MediaReference } from '@capstan/capability';
import { z } from 'zod';
import { readWav, secondsOf } from '../../../stand-ins/wav.ts';

const sentences = [
  'Welcome to Harbour Lights, the show about the people who keep the coast lit.',
  'Today we climb a lighthouse of 1857, where nobody has lived for forty years.',
  'First, the stairs: two hundred and one steps, and no two of them are level.',
  'The keeper carried every litre of oil up there by hand.',
  'Next, the lamp: a flame as large as a thumb, seen from eighteen miles away.',
  'The trick is the lens, which bends almost all of the light towards the horizon.',
  'Next, the fog: on those days the light is worth nothing, and the horn takes over.',
  'It sounds every thirty seconds, and the whole village sleeps through it.',
  'Finally, the visitors: they come for the view, and they ask about the ghosts.',
  'There are none, says the keeper, but the door does close by itself.',
];

const usdPerMinute = 0.006;
const mostMinutes = 60;

/** Each sentence lasts as long as its share of the letters. */
function spread(seconds: number): { start: number; end: number; text: string }[] {
  const letters = sentences.join('').length;
  let said = 0;
  const moment = (): number => Number(((seconds * said) / letters).toFixed(2));
  return sentences.map((text) => {
    const start = moment();
    said += text.length;
    return { start, end: moment(), text };
  });
}

export const capability = defineCapability({
  name: 'transcript',
  version: '1.0.0',
  description: 'Stands in for a speech model: a fixed text with times from the length of the file.',
  input: z.object({
    audio: MediaReference,
    language: z.string().min(1).optional(),
    prompt: z.string().min(1).optional(),
  }),
  output: z.object({
    text: z.string(),
    language: z.string().nullable(),
    duration_s: z.number().nullable(),
    segments: z.array(z.object({ start: z.number(), end: z.number(), text: z.string() })),
    cost_usd: z.number(),
  }),
  cost_model: { type: 'per_call', rate_usd: mostMinutes * usdPerMinute },
  settle: 'reported',
  deterministic: true,
  tags: ['local', 'stand-in'],
  max_concurrency: 2,
  exec: async ({ audio, language = 'en' }, { media }) => {
    const seconds = secondsOf(await readWav(await media.download(audio)));
    if (seconds > mostMinutes * 60) throw new CallFailure(422, `audio: longer than ${mostMinutes} minutes`);
    const segments = spread(seconds);
    const cost_usd = Number(((seconds / 60) * usdPerMinute).toFixed(9));
    return { text: sentences.join(' '), language, duration_s: seconds, segments, cost_usd };
  },
});
