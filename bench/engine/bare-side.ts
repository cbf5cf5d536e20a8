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

export type BareName = 'bare' | 'floor';

const workflowTypes = { bare: 'bareRun', floor: 'floorRun' } as const;

/** The worker of each has a process and a task queue of its own. */
export const bareWorkers = { bare: 'bare worker', floor: 'floor worker' } as const;

export function createBareSide(client: Client, name: BareName): BareSide {
  let lastId = '';
  const describe = () => client.workflow.getHandle(lastId).describe();

  const run = async (shape: Shape, text: string): Promise<void> => {
    const workflowId = `${name}/${randomUUID()}`;
    const handle = await client.workflow.start(workflowTypes[name], {
      workflowId,
      taskQueue: name,
      args: [shape, text],
    });
    checkResult(shape, text, await handle.result());
    lastId = workflowId;
  };

  return {
    name,
    parts: ['Temporal', 'capability', bareWorkers[name]],
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
