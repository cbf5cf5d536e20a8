/** Lays a picture with transparent parts on a plain colour. */
import { defineCapability, MediaReference } from '@capstan/capability';
import { z } from 'zod';
import { type Picture, readPng, writePng } from '../../../stand-ins/png.ts';

/** @param colour as #rrggbb */
function layOn({ width, height, pixels }: Picture, colour: string): Picture {
  const back = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
  const laid = new Uint8Array(pixels.length);
  for (let at = 0; at < pixels.length; at += 4) {
    const share = (pixels[at + 3] ?? 0) / 255;
    for (const [channel, behind] of back.entries()) {
      laid[at + channel] = Math.round((pixels[at + channel] ?? 0) * share + behind * (1 - share));
    }
    laid[at + 3] = 255;
  }
  return { width, height, pixels: laid };
}

export const capability = defineCapability({
  name: 'backdrop',
  version: '1.0.0',
  description: 'Lays a PNG with transparent parts on a plain colour.',
  input: z.object({
    image: MediaReference,
    colour: z.string().regex(/^#[0-9a-f]{6}$/, { error: 'expected a colour such as #e8d9c0' }),
    output_path: MediaReference,
  }),
  output: z.object({ output_path: z.string() }),
  cost_model: { type: 'free', rate_usd: 0 },
  deterministic: true,
  tags: ['local', 'stand-in'],
  max_concurrency: 4,
  exec: async ({ image, colour, output_path }, { media }) => {
    const laid = layOn(await readPng(await media.download(image)), colour);
    const result = await media.temporaryPath('laid.png');
    await writePng(result, laid);
    await media.upload(result, output_path, 'image/png');
    return { output_path };
  },
});
