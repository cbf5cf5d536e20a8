import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { effectiveLevel } from '../../src/ladder/levels.ts';

function times(n: number, fingerprint: string): string[] {
  return Array.from({ length: n }, () => fingerprint);
}
function others(n: number): string[] {
  return Array.from({ length: n }, (_, at) => `other ${at}`);
}

const table: [rule: string, from_level: number, history: string[], level: number][] = [
  ['the level asked for a new error', 1, [], 1],
  ['the level asked for an error seen less often', 3, times(2, 'f'), 3],
  ['as high as the error was often', 1, [...times(3, 'f'), ...others(5)], 3],
  ['the top for the fourth time', 1, times(4, 'f'), 4],
  ['a person for the fifth time', 1, times(5, 'f'), 5],
  ['the level asked for after twelve entries', 1, others(12), 1],
  ['a person after thirteen entries', 1, others(13), 5],
  ['a person when asked for', 5, [], 5],
  ['a model at least, for level 0 has none', 0, [], 1],
];

/** The specification's loop, as an outside client runs it. `errors` and `suggestions` are whatever comes. */
function runClient(
  errors: readonly string[],
  suggestions: readonly (number | undefined)[],
  patience: number,
): number {
  const history: string[] = [];
  let level = 0;
  for (let executions = 1; executions <= patience; executions += 1) {
    const error = errors[(executions - 1) % errors.length] as string;
    history.push(error);
    if (level >= 4) return executions;
    const advisor = effectiveLevel({ from_level: level + 1, fingerprint: error, history });
    level = advisor === 5 ? 5 : (suggestions[(executions - 1) % suggestions.length] ?? 0);
  }
  throw new Error(`still going after ${patience} executions`);
}

describe('the level that answers /advise', () => {
  it.each(table)('is %s', (_, from_level, history, level) => {
    expect(effectiveLevel({ from_level, fingerprint: 'f', history })).toBe(level);
  });

  it("ends the specification's own loop, whatever the errors and the advice are", () => {
    const error = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n');
    const suggestion = fc.constantFrom(undefined, 0, 1, 2, 3);
    fc.assert(
      fc.property(
        fc.array(error, { minLength: 1, maxLength: 20 }),
        fc.array(suggestion, { minLength: 1, maxLength: 20 }),
        (errors, suggestions) => {
          expect(runClient(errors, suggestions, 14)).toBeLessThanOrEqual(14);
        },
      ),
    );
  });

  it('stops after six executions with one constant error, and after fourteen with ever new ones', () => {
    expect([runClient(['a'], [undefined], 20), runClient(others(20), [0], 20)]).toEqual([6, 14]);
  });
});
