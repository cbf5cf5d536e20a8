/**
 * When a step may be executed without a queue: alone, so that it holds up nothing, and for half a second at a stretch,
 * after which a queued one lets the workflow hear what was said to it.
 */
import type { Unit } from '../core/run/drive.ts';
import { isAlone } from '../core/run/inline-followers.ts';
import type { MachineState } from '../core/run/machine-state.ts';

const longestStretchMs = 500;

export interface InlineTime {
  mayRun(unit: Unit): boolean;
  /** A step has ended. */
  note(durationMs: number, isInline: boolean): void;
}

export function createInlineTime(state: MachineState): InlineTime {
  let stretchMs = 0;
  return {
    mayRun: ({ step }) => step.inline === true && stretchMs < longestStretchMs && isAlone(state),
    note: (durationMs, isInline) => {
      stretchMs = isInline ? stretchMs + durationMs : 0;
    },
  };
}
