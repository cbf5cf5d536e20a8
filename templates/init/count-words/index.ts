/** Counts the words of a text. */
import { defineCapability } from '@capstan/capability';
import { z } from 'zod';

export const capability = defineCapability({
  name: 'count-words',
  version: '1.0.0',
  description: 'Counts the words of a text.',
  input: z.object({ text: z.string() }),
  output: z.object({ words: z.number().int().min(0) }),
  cost_model: { type: 'free', rate_usd: 0 },
  tags: ['local', 'text'],
  max_concurrency: 4,
  exec: ({ text }) => ({ words: text.split(/\s+/).filter((word) => word !== '').length }),
});
