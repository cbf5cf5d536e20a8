/**
 * `executeInline` as a local activity. What it answers stands in one event of the history, so outputs travel only as long
 * as they are few. It does not listen to a cancellation: a batch is over before its run can hear of one, so that whoever
 * cancels it is a machine that stood still (the local activity is late, or the run was given to another worker), and what
 * was sent then is wanted all the same.
 */
import { nameUnit } from '../core/workflow-payloads/summary.ts';
import type { ExecuteInline, InlineRequest, InlineResult } from '../services/steps/execute-inline.ts';
import { toDone } from './step-activity.ts';
import type { InlineBatchEnd, InlineBatchUnit, InlineEnd } from './step-messages.ts';

const mostInHistoryBytes = 65_536;

export function createInlineActivity(executeInline: ExecuteInline) {
  return async (request: InlineRequest): Promise<InlineBatchEnd> => {
    const startedAt = performance.now();
    const { results, closed } = await executeInline(request);
    const took_ms = Math.round(performance.now() - startedAt);
    const ends = nameEnds(request.units, withFewOutputs(results));
    return { ends, took_ms, ...(closed === null ? {} : { closed }) };
  };
}

/** @param ends of the units, in their order */
export function nameEnds(
  units: readonly Pick<InlineBatchUnit, 'step_id' | 'item'>[],
  ends: readonly InlineEnd[],
): InlineBatchEnd['ends'] {
  return Object.fromEntries(
    units.map(({ step_id, item }, at) => [nameUnit(step_id, item), ends[at] ?? 'again']),
  );
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
