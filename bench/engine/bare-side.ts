/**
 * Starts bare workflows and waits by long poll, as any client does. The end is the close time that Temporal has
 * recorded, so that the way back to the client does not count; the way there does.
 */
import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { payloadText } from './shapes.ts';
import type { Side } from './side.ts';

export const createBareSide = (client: Client, taskQueue: string): Side => {
  let lastId = '';
  const describe = () => client.workflow.getHandle(lastId).describe();
  return {
    name: 'bare',
    run: async (shape) => {
      const workflowId = `bare/${randomUUID()}`;
      const startedAt = Date.now();
      const handle = await client.workflow.start('bareRun', {
        workflowId,
        taskQueue,
        args: [shape, payloadText],
      });
      await handle.result();
      const { closeTime } = await handle.describe();
      lastId = workflowId;
      return (closeTime?.getTime() ?? Number.NaN) - startedAt;
    },
    countHistory: async () => (await describe()).historyLength,
  };
};
