/**
 * `executeInline` as a local activity. What it answers stands in one event of the history, so outputs travel only as long
 * as they are few. It does not listen to a cancellation: a batch is over before its run can hear of one, so that whoever
 * cancels it is a machine that stood still (the local activity is late, or the run was given to another worker), and what
 * was sent then is wanted all the same.
 */
import type { ExecuteInline, InlineRequest, InlineResult } from '../services/steps/execute-inline.ts';
import { toDone } from './step-activity.ts';
import type { InlineBatchEnd, InlineEnd } from './step-messages.ts';

const mostInHistoryBytes = 65_536;

export function createInlineActivity(executeInline: ExecuteInline) {
  return async (request: InlineRequest): Promise<InlineBatchEnd> => {
    const startedAt = performance.now();
    const { results, closed } = await executeInline(request);
    const took_ms = Math.round(performance.now() - startedAt);
    return { ends: withFewOutputs(results), took_ms, ...(closed === null ? {} : { closed }) };
  };
}

function withFewOutputs(results: readonly InlineResult[]): InlineEnd[] {
  let left = mostInHistoryBytes;
  return results.map((result) => {
    if (typeof result === 'string') return result;
    const { output, ...done } = toDone(result);
    left -= output === undefined ? 0 : Buffer.byteLength(JSON.stringify(output));
    return output === undefined || left < 0 ? done : { ...done, output };
  });
}
