/** Counts the words of a text file and writes the count as a JSON file. */
import { readFile, writeFile } from 'node:fs/promises';
import { defineCapability, MediaReference } from '@capstan/capability';
import { z } from 'zod';

export const capability = defineCapability({
  name: 'word-count',
  version: '1.0.0',
  description: 'Counts the words of a text file and writes the count as JSON.',
  input: z.object({
    text: z.object({ media_store_path: MediaReference }),
    output_path: MediaReference,
  }),
  output: z.object({ output_path: z.string(), words: z.number().int().min(0) }),
  cost_model: { type: 'free', rate_usd: 0 },
  deterministic: true,
  tags: ['local', 'text'],
  max_concurrency: 4,
  exec: async ({ text, output_path }, { media }) => {
    const content = await readFile(await media.download(text.media_store_path), 'utf8');
    const words = content.split(/\s+/).filter((word) => word !== '').length;
    const result = await media.temporaryPath('words.json');
    await writeFile(result, JSON.stringify({ words }));
    await media.upload(result, output_path, 'application/json');
    return { output_path, words };
  },
});
