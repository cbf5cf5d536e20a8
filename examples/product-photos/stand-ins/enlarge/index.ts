/** Enlarges a picture by the mean of its nearest pixels. A model would also sharpen it. */
import { defineCapability, MediaReference } from '@capstan/capability';
import { z } from 'zod';
import { type Picture, readPng, writePng } from '../../../stand-ins/png.ts';

interface Between {
  readonly from: number;
  readonly to: number;
  /** The share of `to`. */
  readonly share: number;
}

function between(at: number, scale: number, size: number): Between {
  const place = Math.max(0, Math.min(size - 1, (at + 0.5) / scale - 0.5));
  const from = Math.floor(place);
  return { from, to: Math.min(size - 1, from + 1), share: place - from };
}

function enlargeBy({ width, height, pixels }: Picture, scale: number): Picture {
  const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
  const large = new Uint8Array(wide * high * 4);
  const columns = Array.from({ length: wide }, (_, x) => between(x, scale, width));
  for (let y = 0; y < high; y += 1) {
    const row = between(y, scale, height);
    for (const [x, column] of columns.entries()) {
      for (let channel = 0; channel < 4; channel += 1) {
        const read = (line: number, place: number): number =>
          pixels[(line * width + place) * 4 + channel] ?? 0;
        const above =
          read(row.from, column.from) * (1 - column.share) + read(row.from, column.to) * column.share;
        const below = read(row.to, column.from) * (1 - column.share) + read(row.to, column.to) * column.share;
        large[(y * wide + x) * 4 + channel] = Math.round(above * (1 - row.share) + below * row.share);
      }
    }
  }
  return { width: wide, height: high, pixels: large };
}

export const capability = defineCapability({
  name: 'enlarge',
  version: '1.0.0',
  description: 'Enlarges a PNG.',
  input: z.object({
    image: MediaReference,
    scale: z.number().min(1).max(4).default(2),
    output_path: MediaReference,
  }),
  output: z.object({ output_path: z.string() }),
  cost_model: { type: 'per_call', rate_usd: 0.01 },
  deterministic: true,
  tags: ['local', 'stand-in'],
  max_concurrency: 2,
  exec: async ({ image, scale, output_path }, { media }) => {
    const large = enlargeBy(await readPng(await media.download(image)), scale);
    const result = await media.temporaryPath('large.png');
    await writePng(result, large);
    await media.upload(result, output_path, 'image/png');
    return { output_path };
  },
});
