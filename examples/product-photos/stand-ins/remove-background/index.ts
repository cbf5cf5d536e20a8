/** Makes a plain background transparent: every pixel that is joined to the border and has its colour. */
import { defineCapability, MediaReference } from '@capstan/capability';
import { z } from 'zod';
import { type Picture, readPng, writePng } from '../../../stand-ins/png.ts';

const tolerance = 30;

/** The largest difference of a pixel's colours to those of the corner. */
function distance({ pixels }: Picture, at: number): number {
  const channels = [0, 1, 2].map((channel) =>
    Math.abs((pixels[at * 4 + channel] ?? 0) - (pixels[channel] ?? 0)),
  );
  return Math.max(...channels);
}

/** @returns the picture, and the share of its pixels that became transparent */
function cutOut(picture: Picture): { readonly cutout: Picture; readonly removed: number } {
  const { width, height } = picture;
  const pixels = Uint8Array.from(picture.pixels);
  const seen = new Uint8Array(width * height);
  const open = Array.from({ length: width }, (_, x) => [x, (height - 1) * width + x]).flat();
  open.push(...Array.from({ length: height }, (_, y) => [y * width, y * width + width - 1]).flat());
  let removed = 0;
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (seen[at] === 1 || distance(picture, at) > tolerance) continue;
    seen[at] = 1;
    pixels[at * 4 + 3] = 0;
    removed += 1;
    const x = at % width;
    if (x > 0) open.push(at - 1);
    if (x < width - 1) open.push(at + 1);
    if (at >= width) open.push(at - width);
    if (at < (height - 1) * width) open.push(at + width);
  }
  return { cutout: { width, height, pixels }, removed: removed / (width * height) };
}

export const capability = defineCapability({
  name: 'remove-background',
  version: '1.0.0',
  description: 'Makes the plain background of a PNG transparent.',
  input: z.object({ image: MediaReference, output_path: MediaReference }),
  output: z.object({ output_path: z.string(), removed: z.number().optional() }),
  cost_model: { type: 'per_call', rate_usd: 0.02 },
  deterministic: true,
  tags: ['local', 'stand-in'],
  max_concurrency: 2,
  exec: async ({ image, output_path }, { media }) => {
    const { cutout, removed } = cutOut(await readPng(await media.download(image)));
    const result = await media.temporaryPath('cutout.png');
    await writePng(result, cutout);
    await media.upload(result, output_path, 'image/png');
    return { output_path, removed: Number(removed.toFixed(3)) };
  },
});
