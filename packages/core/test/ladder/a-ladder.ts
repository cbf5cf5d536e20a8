/** Ladders and events in few words, and every ladder that an adversary can drive. */
import fc from 'fast-check';
import { applyLadder, createAttempt, startLadder } from '../../src/ladder/machine.ts';
import type { LadderEvent, LadderStart, LadderState } from '../../src/ladder/types.ts';

export function attempt(level: number, fingerprint: string) {
  return createAttempt({ level, attempted_at: 1_000, error: `error ${fingerprint}`, fingerprint });
}

export function aLadder(start: Partial<LadderStart> = {}): LadderState {
  return startLadder({ start_level: 0, history: [], advice: [], ...start });
}

/** A step's ladder: its own call failed with `f`. */
export function aStepLadder(start: Partial<LadderStart> = {}): LadderState {
  return aLadder({ history: [attempt(0, 'f')], ...start });
}

function failure(fingerprint: string) {
  return {
    attempted_at: 2_000,
    error: `error ${fingerprint}`,
    fingerprint,
  };
}

/**
 * `real f`, `transient`, `malformed f`, `config`, `budget`, `no_template f`, `gave_up f`, `advised text 2`,
 * `succeeded`, `unavailable`, `timed_out`, `cancel_requested`.
 */
export function eventOf(text: string): LadderEvent {
  const [type, first = 'f', level] = text.split(' ') as [string, string?, string?];
  switch (type) {
    case 'real':
    case 'transient':
    case 'malformed':
    case 'config':
    case 'budget':
      return { type: 'failed', class: type, ...failure(first) };
    case 'no_template':
    case 'gave_up':
      return { type, ...failure(first) };
    case 'advised':
      return {
        type,
        instructions: first,
        ...(level === undefined ? {} : { suggested_executor_level: Number(level) }),
      };
    default:
      return { type: type as 'succeeded' | 'unavailable' | 'timed_out' | 'cancel_requested' };
  }
}

/** `execute 0`, `advise 2`, `stop exhausted`, `succeed 1`; with `again` when it is not the first time. */
export function commandOf({ command }: LadderState): string {
  switch (command.type) {
    case 'execute':
    case 'advise': {
      const level = command.type === 'execute' ? command.level : command.from_level;
      const again = command.transients > 0 || command.malformed !== null ? ' again' : '';
      return `${command.type} ${level}${again}`;
    }
    case 'succeed':
      return `succeed ${command.level}`;
    case 'stop':
      return `stop ${command.reason}`;
  }
}

export function tell(state: LadderState, script: readonly string[]): LadderState {
  return script.reduce((at, text) => applyLadder(at, eventOf(text)), state);
}

export const anyStart: fc.Arbitrary<LadderState> = fc
  .record({
    start_level: fc.integer({ min: 0, max: 4 }),
    lowest_level: fc.integer({ min: 0, max: 4 }),
    max_level: fc.integer({ min: 0, max: 4 }),
    max_advices_per_level: fc.integer({ min: 1, max: 3 }),
    history: fc.constantFrom([], [attempt(0, 'f')]),
  })
  .map(aLadder);

export const anyEvents: fc.Arbitrary<LadderEvent[]> = fc.array(
  fc
    .oneof(
      {
        weight: 8,
        arbitrary: fc
          .tuple(
            fc.constantFrom('real', 'real', 'malformed', 'no_template', 'gave_up'),
            fc.constantFrom('f', 'g', 'h'),
          )
          .map((words) => words.join(' ')),
      },
      {
        weight: 8,
        arbitrary: fc
          .tuple(
            fc.constantFrom('a', 'b', 'c', 'd'),
            fc.constantFrom('', ' -1', ' 0', ' 1', ' 2', ' 3', ' 4', ' 1.5'),
          )
          .map(([text, level]) => `advised ${text}${level}`),
      },
      { weight: 3, arbitrary: fc.constantFrom('transient', 'unavailable') },
      { weight: 1, arbitrary: fc.constantFrom('succeeded', 'config', 'advised e 5') },
    )
    .map(eventOf),
  { maxLength: 60 },
);
