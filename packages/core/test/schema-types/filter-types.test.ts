/** The types of filters against their values: a type never excludes a value that an evaluation gives. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import type { Json } from '../../src/contracts/primitives.ts';
import { filterNames, filters } from '../../src/expression/filters.ts';
import { ExpressionError } from '../../src/expression/language.ts';
import { compileTemplate } from '../../src/expression/template.ts';
import { typeOfValue, unionOf } from '../../src/schema-types/combine-types.ts';
import { typeOfExpression } from '../../src/schema-types/expression-type.ts';
import type { TypeFault } from '../../src/schema-types/path-type.ts';
import { overlapOf, type ValueType } from '../../src/schema-types/value-type.ts';
import { aJob, evaluateIn } from '../expression/a-scope.ts';

const scalar = fc.oneof(
  fc.integer({ min: -9, max: 9 }),
  fc.double({ min: -9, max: 9, noNaN: true }),
  fc.constantFrom('', 'a', '1', '2026-01-31', '[1]', 'a,b'),
  fc.boolean(),
  fc.constant(null),
);
const anObject = fc.dictionary(fc.constantFrom('a', 'b'), scalar, { maxKeys: 2 });
const value: fc.Arbitrary<Json> = fc.oneof(
  scalar,
  anObject,
  fc.array(scalar, { maxLength: 4 }),
  fc.array(fc.integer(), { maxLength: 4 }),
  fc.array(fc.string({ maxLength: 2 }), { maxLength: 4 }),
  fc.array(fc.oneof(anObject, anObject, fc.constant(null)), { maxLength: 4 }),
  fc.array(fc.array(scalar, { maxLength: 2 }), { maxLength: 3 }),
);

function writeCall(name: (typeof filterNames)[number]): fc.Arbitrary<string> {
  const given = fc.constantFrom('job.y', '1', '"a"', '0', '","', '"1d"', '[]', '[job.y]', '{"a": job.y}');
  switch (filters[name].argument) {
    case 'none':
      return fc.constant(name);
    case 'string':
      return fc.constant(`${name}("YYYY")`);
    case 'field':
      return fc.constantFrom(`${name}("a")`, `${name}("b")`);
    case 'value':
      return given.map((one) => `${name}(${one})`);
    case 'values':
      return fc.tuple(given, given).map(([one, two]) => `${name}(${one}, ${two})`);
    case 'optional':
      return fc.constantFrom(name, `${name}(1)`);
    case 'condition':
      return fc
        .tuple(fc.constantFrom('==', '!=', '<'), given)
        .map(([sign, one]) => `${name}("a" ${sign} ${one})`);
  }
}

const call = fc.constantFrom(...filterNames).chain(writeCall);

function typeIn(text: string, types: Readonly<Record<string, ValueType>>) {
  const faults: TypeFault[] = [];
  const { root } = compileTemplate(text);
  if (root.kind !== 'expression') throw new Error('one expression');
  const typed = typeOfExpression(root.expression, {
    startOf: ({ segments: [name] }) => ({
      type: types[String(name)] as ValueType,
      missing: 'no',
      length: 1,
    }),
    report: (fault) => faults.push(fault),
    effort: { left: 100_000 },
  });
  return { typed, faults };
}

/**
 * Whether a filter has nothing to work on: no value, or a list without items. An argument that it refuses for every
 * other input is still a mistake.
 */
function isIdle(x: Json, y: Json, calls: readonly string[]): boolean {
  return calls.some((_, count) => {
    const before = ['job.x', ...calls.slice(0, count)].join(' | ');
    const given = evaluateIn(`{{ (${before}) ?? "nothing" }}`, aJob({ x, y }));
    return given === 'nothing' || (Array.isArray(given) && given.length === 0);
  });
}

test('a field that no object has is not certainly wrong where each item may be null', () => {
  const x = unionOf([typeOfValue([null]), typeOfValue([{}])]);
  const { typed, faults } = typeIn('{{ job.x | map("a") }}', { x });
  expect(evaluateIn('{{ job.x | map("a") }}', aJob({ x: [null] }))).toEqual([null]);
  expect(faults).toMatchObject([{ severity: 'warning', code: 'path_optional' }]);
  expect(typed.missing).toBe('maybe');
});

test.each<[readonly Json[], Json]>([
  [[{}, { a: 0 }], [{}]],
  [[{ a: [1] }, { a: [1], b: [2, 3] }], [{ a: 1 }]],
  [[{ a: [1] }, { b: [] }], [{ a: 1 }]],
  [[{}, { a: [1, 2], b: [1, 2] }], [{}]],
])('rows of objects that have a key or lack it: %j', (values, rows) => {
  const { typed, faults } = typeIn('{{ job.x | combinations }}', { x: unionOf(values.map(typeOfValue)) });
  expect(evaluateIn('{{ job.x | combinations }}', aJob({ x: values[0] as Json }))).toEqual(rows);
  expect(faults.filter(({ severity }) => severity === 'error')).toEqual([]);
  expect(overlapOf(typed.type, typeOfValue(rows), { left: 100_000 })).toBe('some');
});

test('the result of an evaluation has the type, and no error was certain', () => {
  fc.assert(
    fc.property(value, value, fc.array(call, { minLength: 1, maxLength: 3 }), value, (x, y, calls, other) => {
      const text = `{{ job.x | ${calls.join(' | ')} }}`;
      let given: Json;
      try {
        given = evaluateIn(text, aJob({ x, y }));
      } catch (error) {
        if (error instanceof ExpressionError) return;
        throw error;
      }
      if (isIdle(x, y, calls)) return;
      for (const type of [typeOfValue(x), unionOf([typeOfValue(x), typeOfValue(other)])]) {
        const { typed, faults } = typeIn(text, { x: type, y: typeOfValue(y) });
        expect([text, faults.filter(({ severity }) => severity === 'error')]).toEqual([text, []]);
        const overlap = overlapOf(typed.type, typeOfValue(given), { left: 100_000 });
        expect([text, given, typed.missing, overlap]).not.toEqual([text, given, typed.missing, 'none']);
        expect([text, typed.missing]).not.toEqual([text, 'yes']);
      }
    }),
    { numRuns: runs(1_000) },
  );
});
