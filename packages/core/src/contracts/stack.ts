/** `<data>/stack.json`: how to reach a running embedded stack. Written with mode 0600. */
import { z } from 'zod';

export const StackFile = z.strictObject({
  api_url: z.string(),
  api_key: z.string(),
  project_id: z.string(),
  console_url: z.string(),
  temporal_address: z.string(),
  temporal_ui_url: z.string().nullable(),
  database_url: z.string(),
  media_url: z.string(),
  pids: z.record(z.string(), z.number().int()),
});
export type StackFile = z.infer<typeof StackFile>;
