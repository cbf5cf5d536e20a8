/**
 * `executeInline` as a local activity. What it answers stands in one event of the history, so outputs travel only as long
 * as they are few.
 */
import type { ExecuteInline, InlineRequest, InlineResult } from '../services/steps/execute-inline.ts';
import { toDone } from './step-activity.ts';
import type { InlineBatchEnd, InlineEnd } from './step-messages.ts';
import { whileWanted } from './while-beating.ts';

const mostInHistoryBytes = 65_536;

export function createInlineActivity(executeInline: ExecuteInline) {
  return (request: InlineRequest): Promise<InlineBatchEnd> =>
    whileWanted(async (signal) => {
      const startedAt = performance.now();
      const { results, closed } = await executeInline(request, signal);
      const took_ms = Math.round(performance.now() - startedAt);
      return { ends: withFewOutputs(results), took_ms, ...(closed === null ? {} : { closed }) };
    });
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
