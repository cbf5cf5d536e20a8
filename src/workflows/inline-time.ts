/**
 * When a step may be executed without a queue: alone, so that it holds up nothing, and for half a second at a stretch,
 * after which a queued one lets the workflow hear what was said to it.
 */
import type { Unit } from '../core/run/drive.ts';
import type { RunState } from '../core/run/run-state.ts';
import { type RunPipelineInput, waitingVersion } from '../core/run/workflow-input.ts';

const longestStretchMs = 500;

export interface InlineTime {
  mayRun(unit: Unit): boolean;
  /** A step has ended. */
  note(durationMs: number, isInline: boolean): void;
}

export const createInlineTime = ({ engine_version }: RunPipelineInput, state: () => RunState): InlineTime => {
  let stretchMs = 0;
  return {
    mayRun: ({ step }) =>
      step.inline === true &&
      engine_version >= waitingVersion &&
      stretchMs < longestStretchMs &&
      isAlone(state()),
    note: (durationMs, isInline) => {
      stretchMs = isInline ? stretchMs + durationMs : 0;
    },
  };
};

/** The unit itself is in flight already. */
const isAlone = ({ inFlight, deciding, undecided, ready, taken, openFans, waits }: RunState): boolean =>
  inFlight === 1 && deciding + undecided.length + openFans.size + waits.size === 0 && ready.length === taken;
