/**
 * Every adversary, by memoised search over abstract ladders. Two ladders are the same when their commands, the
 * advices given by level, and what may still advise on each error are the same, up to the errors' names. Errors are
 * any that were seen, and always one more. An execution is an `execute` command that was answered: a step's own
 * call, which comes before its ladder, is not one; the free try at level 0 is, also with nothing to apply.
 */
import { describe, expect, it } from 'vitest';
import { isLong } from '../../../../test/support/long.ts';
import { applyLadder } from '../../src/ladder/machine.ts';
import type { LadderStart, LadderState } from '../../src/ladder/types.ts';
import { aLadder, aStepLadder, commandOf, eventOf } from './a-ladder.ts';

interface Count {
  readonly advices: number;
  readonly executions: number;
}

/** Of each error that was seen, the highest level that has advised on it, or 0. */
function readHeights({ history, advice }: LadderState): Map<string, number> {
  const heights = new Map(history.map(({ fingerprint }) => [fingerprint, 0]));
  for (const { fingerprint, from_level } of advice) {
    heights.set(fingerprint, Math.max(heights.get(fingerprint) ?? 0, from_level));
  }
  return heights;
}

const hasAdvice = 16;

/**
 * The levels that may still advise on an error of a height, as bits, and whether any has, so that it may repeat
 * itself. Errors on which none may advise any more are all alike.
 * @param free levels that may still advise on something
 */
function openLevels(free: number, height: number): number {
  const levels = (free >> height) << height;
  return levels > 0 && height > 0 ? levels | hasAdvice : levels;
}

function keyOf(state: LadderState): string {
  const { command, history, advice, rules } = state;
  const given = [0, 0, 0, 0];
  for (const { from_level } of advice) given[from_level - 1] = (given[from_level - 1] ?? 0) + 1;
  const free = given.reduce((bits, n, at) => (n < rules.max_advices_per_level ? bits | (1 << at) : bits), 0);
  const heights = readHeights(state);
  const last = history.at(-1);
  const current = last === undefined ? -1 : openLevels(free, heights.get(last.fingerprint) ?? 0);
  const open: number[] = [];
  for (const height of heights.values()) {
    const bits = openLevels(free, height);
    if (bits !== free && (bits > 0 || !open.includes(0))) open.push(bits);
  }
  const retry = 'transients' in command ? `${command.transients}${command.malformed !== null}` : '';
  return `${commandOf(state)};${retry};${given};${current};${open.sort()}`;
}

/** One error of each kind that the ladder can distinguish, and a new one. */
function errorsFor(state: LadderState, isConstant: boolean): string[] {
  if (isConstant) return ['f'];
  const byHeight = new Map([...readHeights(state)].map(([error, height]) => [height, error]));
  return [...byHeight.values(), `e${state.history.length}`];
}

interface Adversary {
  /** It has one error only. */
  readonly isConstant?: boolean;
  /** It also makes calls fail for a while: these only come back to the same command. */
  readonly isFlaky?: boolean;
}

function answersTo(state: LadderState, { isConstant = false, isFlaky = false }: Adversary): string[] {
  const { command, advice } = state;
  const errors = errorsFor(state, isConstant);
  if (command.type === 'execute') {
    // The first malformed answer only comes back, and what failed for want of a template keeps the error it had.
    const malformed = command.malformed === null ? errors.slice(-1) : errors;
    return [
      'succeeded',
      'unavailable',
      ...errors.map((error) => `real ${error}`),
      ...(isFlaky ? ['transient', ...malformed.map((error) => `malformed ${error}`)] : []),
      ...(command.level === 0 ? errors.slice(-1).map((error) => `no_template ${error}`) : []),
    ];
  }
  if (command.type !== 'advise') return [];
  const earlier = advice.find((one) => one.fingerprint === command.fingerprint);
  const repeated =
    earlier === undefined
      ? []
      : [`advised ${earlier.instructions} ${earlier.suggested_executor_level ?? ''}`.trim()];
  const fresh = ['', ' 1', ' 2', ' 3', ' 4', ' 5'].map((level) => `advised a${advice.length}${level}`);
  return ['unavailable', ...(isFlaky ? ['transient', 'malformed'] : []), ...fresh, ...repeated];
}

function countStep(from: LadderState, to: LadderState, answer: string): Count {
  return {
    advices: to.advice.length - from.advice.length,
    executions:
      from.command.type !== 'execute' || answer === 'unavailable' || commandOf(to).endsWith('again') ? 0 : 1,
  };
}

/** The most that this adversary gets from each start; a ladder that could continue for ever fails the test. */
function worstOf(starts: readonly LadderState[], adversary: Adversary): Count[] {
  const known = new Map<string, Count | 'open'>();
  const visit = (state: LadderState): Count => {
    const key = keyOf(state);
    const before = known.get(key);
    if (before === 'open') throw new Error(`the ladder comes back to ${key}`);
    if (before !== undefined) return before;
    known.set(key, 'open');
    const worst = { advices: 0, executions: 0 };
    for (const answer of answersTo(state, adversary)) {
      const next = applyLadder(state, eventOf(answer));
      const rest = visit(next);
      const here = countStep(state, next, answer);
      worst.advices = Math.max(worst.advices, here.advices + rest.advices);
      worst.executions = Math.max(worst.executions, here.executions + rest.executions);
    }
    known.set(key, worst);
    return worst;
  };
  return starts.map(visit);
}

/** A job's ladder and a step's. */
function both(rules: Partial<LadderStart>): LadderState[] {
  return [aLadder(rules), aStepLadder(rules)];
}

describe('no adversary', () => {
  it.each([
    [1, { executions: 6, advices: 4 }, true],
    [2, { executions: 10, advices: 8 }, isLong],
    // The search of three takes as long as all other tests of this folder.
    ...(isLong ? ([[3, { executions: 14, advices: 12 }, false]] as const) : []),
  ] as const)(
    'gets more than 4r + 2 executions and 4r advices out of r = %i, and one gets them',
    (r, bound, isFlaky) => {
      const starts = both({ max_advices_per_level: r, max_transients: 1 });
      expect(worstOf(starts, { isFlaky })).toEqual([bound, bound]);
    },
  );

  it.each([1, 2, 3])('gets more than 6 executions and 4 advices with one constant error, r = %i', (r) => {
    const bound = { executions: 6, advices: 4 };
    expect(worstOf(both({ max_advices_per_level: r }), { isConstant: true, isFlaky: true })).toEqual([
      bound,
      bound,
    ]);
  });

  it.each([1, 2, 3, 4])(
    'gets more from a ladder that starts at level %i, or is held above or below it',
    (level) => {
      for (const rules of [{ start_level: level }, { lowest_level: level }, { max_level: level }]) {
        for (const { advices, executions } of worstOf(both({ ...rules, max_advices_per_level: 1 }), {})) {
          expect(advices).toBeLessThanOrEqual(4);
          expect(executions).toBeLessThanOrEqual(6);
        }
      }
    },
  );
});
