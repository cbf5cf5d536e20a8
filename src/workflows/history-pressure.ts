/** How long the history of this workflow has become: past the first limit it continues as new as soon as it can, past the second it must. */
import { workflowInfo } from '@temporalio/workflow';
import type { HistoryPressure } from '../core/run/machine-state.ts';
import type { RunPipelineInput } from '../core/workflow-payloads/run-input.ts';

const softEvents = 4_096;
const softBytes = 4 * 1_048_576;

export function createHistoryPressure({ history_events = softEvents }: RunPipelineInput) {
  return (): HistoryPressure => {
    const { historyLength, historySize } = workflowInfo();
    const times = Math.max(historyLength / history_events, historySize / softBytes);
    return times < 1 ? 'none' : times < 2 ? 'soft' : 'hard';
  };
}
