/** The capabilities that fail: one has a strict schema, so the router refuses its inputs; the others refuse them. */
import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { Random } from '../shared/random.ts';

const text = { type: 'string' };
const number = { type: 'number' };
const integer = { type: 'integer' };

const strictSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    ref: text,
    source: text,
    title: text,
    preset: text,
    language: text,
    style: text,
    width: integer,
    height: integer,
    pad: integer,
    fps: number,
    duration: number,
    opacity: number,
    start: number,
    end: number,
    line: integer,
    speed: number,
    visibility: text,
    aspect: text,
    bitrate: { type: 'integer', maximum: 50_000 },
    rate: integer,
    channels: integer,
    codec: { enum: ['h264', 'hevc', 'vp9', 'av1'] },
    container: { enum: ['mp4', 'matroska', 'quicktime', 'mpegts', 'webm'] },
    burn_in: { type: 'boolean' },
    audio: { type: 'object', properties: { rate: integer, bitrate: integer } },
  },
};

export const openCapabilities: ReadonlySet<string> = new Set(['trim', 'caption', 'voice', 'publish']);

export const schemas: Readonly<Record<string, JsonObject>> = {
  encode: strictSchema,
  ...Object.fromEntries([...openCapabilities].map((name) => [name, { type: 'object' }])),
};

const words = ['coast', 'harbour', 'night', 'train', 'winter', 'orchard', 'storm', 'market', 'bridge'];

/** An input without a mistake, of any of them. @param ref by which the instances recognise the failure */
export function soundInput(random: Random, ref: string): JsonObject {
  const word = (): string => words[random.below(words.length)] as string;
  const size = 2 * (100 + random.below(900));
  return {
    ref,
    source: `media://job/${word()}-${random.below(10_000)}.mp4`,
    title: `${word()} ${word()}`,
    preset: 'web_1080p',
    language: 'en',
    style: 'calm',
    codec: 'h264',
    container: 'mp4',
    width: size,
    height: 2 * (100 + random.below(500)),
    pad: 0,
    fps: 25,
    opacity: 1,
    aspect: '16:9',
    start: random.below(90),
    end: 100 + random.below(900),
    duration: 10 + random.below(600),
    line: 1 + random.below(20),
    speed: 1,
    visibility: 'private',
    burn_in: random.below(2) === 0,
    bitrate: 1_000 + 100 * random.below(80),
    rate: 48_000,
    channels: 2,
    audio: { rate: 48_000, bitrate: 128 },
  };
}
