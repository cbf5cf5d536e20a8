/** The way of a bare workflow: Temporal's history has the times, and so has the capability that it calls. */
import type { Client } from '@temporalio/client';
import { createBareSide } from '../engine/bare-side.ts';
import { readClock } from '../engine/clock.ts';
import { dispatchShape, makeText } from '../engine/shapes.ts';
import { findCalls, takeTally } from '../engine/tally.ts';
import type { Path } from './marks.ts';
import type { PathSide } from './path-side.ts';
import { readWallOffset } from './wall-clock.ts';
import { readWorkflowEvents } from './workflow-events.ts';

interface BareContext {
  readonly client: Client;
  /** Where the tally is. */
  readonly endpoint: string;
}

export function createBarePath({ client, endpoint }: BareContext): PathSide {
  const side = createBareSide(client, 'bare');

  const follow = async (): Promise<Path> => {
    const text = makeText();
    const offset = readWallOffset();
    const since = readClock() + offset;
    await side.run(dispatchShape, text);
    const { firstAt } = findCalls(await takeTally(endpoint), text, dispatchShape.steps, 'bare');
    const timesOf = await readWorkflowEvents(client, side.lastId());
    const begunAt = timesOf('activityTaskStartedEventAttributes');
    const endedAt = timesOf('activityTaskCompletedEventAttributes');
    const at = (times: readonly number[], index: number) => (times[index] ?? Number.NaN) - since;
    return {
      'workflow started': at(timesOf('workflowExecutionStartedEventAttributes'), 0),
      'run with the worker': at(timesOf('workflowTaskStartedEventAttributes'), 0),
      'activity with the worker': at(begunAt, 0),
      'first call': firstAt + offset - since,
      'step 1 ended': at(endedAt, 0),
      'step 2 begun': at(begunAt, 1),
      'step 2 ended': at(endedAt, 1),
      'step 3 begun': at(begunAt, 2),
      'step 3 ended': at(endedAt, 2),
      'run ended': at(timesOf('workflowExecutionCompletedEventAttributes'), 0),
    };
  };

  return { name: 'bare', follow, awaitKnown: async () => undefined, tellDispatch: async () => null };
}
