/**
 * Starts bare workflows and waits by long poll, as any client does. The end is the close time that Temporal has
 * recorded, so that the way back to the client does not count; the way there does.
 */
import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { checkResult } from './check-result.ts';
import type { Shape } from './shapes.ts';
import type { Side } from './side.ts';

export interface BareSide extends Side {
  /** The workflow of the last run; empty before the first. */
  lastId(): string;
}

export function createBareSide(client: Client, taskQueue: string): BareSide {
  let lastId = '';
  const describe = () => client.workflow.getHandle(lastId).describe();

  const run = async (shape: Shape, text: string): Promise<void> => {
    const workflowId = `bare/${randomUUID()}`;
    const handle = await client.workflow.start('bareRun', { workflowId, taskQueue, args: [shape, text] });
    checkResult(shape, text, await handle.result());
    lastId = workflowId;
  };

  return {
    name: 'bare',
    parts: ['Temporal', 'capability', 'bare worker'],
    run,
    time: async (shape, text) => {
      const startedAt = Date.now();
      await run(shape, text);
      const { closeTime } = await describe();
      return (closeTime?.getTime() ?? Number.NaN) - startedAt;
    },
    countHistory: async () => (await describe()).historyLength,
    capstan: null,
    lastId: () => lastId,
  };
}
