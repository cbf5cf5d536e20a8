/**
 * How far the calls of a run have come, as their instances say. Each instance has a rhythm of its own: one that is
 * silent for much longer than it ever was is shown to be, and that is all, for silence is no failure.
 */
import type { RunEvent } from '../../contracts/event.ts';
import { formatDuration } from '../render/amounts.ts';

export interface ProgressBoard {
  note(event: RunEvent, now: number): void;
  /** `40 % encoding, silent for 12.0s`; empty when the step has said nothing. */
  describe(stepId: string, now: number): string;
}

interface Said {
  readonly progress: number;
  readonly message?: string;
  readonly at: number;
  readonly longestGapMs: number;
}

/** Times its longest silence so far, and never less than the least. */
const unusual = { factor: 3, leastMs: 5_000 };

function describe({ progress, message, at, longestGapMs }: Said, now: number): string {
  const silentMs = now - at;
  const isUnusual = silentMs > Math.max(unusual.leastMs, unusual.factor * longestGapMs);
  const silence = isUnusual ? `, silent for ${formatDuration(silentMs)}` : '';
  return `${Math.round(progress * 100)} %${message === undefined ? '' : ` ${message}`}${silence}`;
}

export function createProgressBoard(): ProgressBoard {
  const said = new Map<string, Said>();
  return {
    note: ({ type, step_id, item, data }, now) => {
      if (step_id === undefined || item !== undefined) return;
      if (type !== 'step.progress') {
        said.delete(step_id);
        return;
      }
      const told = data as Pick<Said, 'progress' | 'message'>;
      const last = said.get(step_id);
      const longestGapMs = last === undefined ? 0 : Math.max(last.longestGapMs, now - last.at);
      said.set(step_id, { ...told, at: now, longestGapMs });
    },
    describe: (stepId, now) => {
      const one = said.get(stepId);
      return one === undefined ? '' : describe(one, now);
    },
  };
}
