/** Rounds that wait for one watcher. Whoever reads too slowly is cut off, and goes on from where it stood. */
import { type CancelSignal, onCancel } from '../../core/cancellation.ts';
import type { StreamRound } from './stream-round.ts';

const mostWaiting = 200;

export interface RoundQueue {
  readonly take: (round: StreamRound) => void;
  /** Until `signal` aborts, or too many wait. */
  readonly rounds: () => AsyncGenerator<StreamRound, void, undefined>;
}

export function createRoundQueue(signal: CancelSignal): RoundQueue {
  const waiting: StreamRound[] = [];
  let isBehind = false;
  let wake: () => void = () => undefined;
  const news = (): Promise<void> =>
    new Promise((resolve) => {
      wake = resolve;
      if (waiting.length > 0 || isBehind || signal.aborted) resolve();
    });
  return {
    take: (round) => {
      if (waiting.length >= mostWaiting) isBehind = true;
      else waiting.push(round);
      wake();
    },
    rounds: async function* () {
      const stopListening = onCancel(signal, () => wake());
      try {
        while (!signal.aborted && !isBehind) {
          const round = waiting.shift();
          if (round === undefined) await news();
          else yield round;
        }
      } finally {
        stopListening();
      }
    },
  };
}
