/** Any tree that the parser could make. */
import fc from 'fast-check';
import { anyText } from '../../../../test/support/any-text.ts';
import type { Expression, FilterCall, Segment } from '../../src/expression/ast.ts';
import { type Dialect, knownFilters } from '../../src/expression/filters.ts';
import { arithmeticOperators, comparisonOperators } from '../../src/expression/language.ts';
import { isForbiddenName } from '../../src/json/values.ts';

const key = anyText().filter((name) => !isForbiddenName(name));

const segment: fc.Arbitrary<Segment> = fc.oneof(
  key,
  fc.constantFrom('a', 'a-b', '_x9', 'in', 'true', '[*]', '{{', '}}', '"', "'"),
  fc.nat(),
  fc.constant({ each: true } as const),
);

function filterCallOf(
  { filterNames }: Dialect,
  expression: fc.Arbitrary<Expression>,
): fc.Arbitrary<FilterCall> {
  const values = (least: number, most: number) => fc.array(expression, { minLength: least, maxLength: most });
  const field = fc.string().filter((name) => !isForbiddenName(name));
  const none = fc.constant(null);
  return fc.constantFrom(...filterNames).chain((name): fc.Arbitrary<FilterCall> => {
    switch (knownFilters[name].argument) {
      case 'none':
        return fc.constant({ name, argument: null });
      case 'string':
        return fc.record({ name: fc.constant(name), argument: fc.string() });
      case 'field':
        return fc.record({ name: fc.constant(name), argument: field });
      case 'value':
        return fc.record({ name: fc.constant(name), argument: none, values: values(1, 1) });
      case 'values':
        return fc.record({ name: fc.constant(name), argument: none, values: values(2, 2) });
      case 'optional':
        return fc.oneof(
          fc.constant({ name, argument: null }),
          fc.record({ name: fc.constant(name), argument: none, values: values(1, 1) }),
        );
      case 'condition':
        return fc.record({
          name: fc.constant(name),
          argument: field,
          operator: fc.constantFrom(...comparisonOperators),
          values: values(1, 1),
        });
    }
  });
}

export function expressionOf(dialect: Dialect) {
  return fc.letrec<{ expression: Expression; simple: Expression }>((tie) => ({
    simple: fc.oneof(
      fc.record({
        kind: fc.constant('literal' as const),
        value: fc.oneof(
          fc.constant(null),
          fc.boolean(),
          fc.string(),
          fc.double({ noNaN: true, noDefaultInfinity: true }).filter((n) => !Object.is(n, -0)),
        ),
      }),
      fc.record({
        kind: fc.constant('path' as const),
        root: fc.constantFrom(...dialect.roots),
        segments: fc.array(segment, { maxLength: 6 }),
        offset: fc.constant(0),
      }),
    ),
    expression: fc.oneof(
      { maxDepth: 5, depthSize: 'small' },
      tie('simple'),
      fc.record({
        kind: fc.constant('filtered' as const),
        of: tie('expression').filter(({ kind }) => kind !== 'filtered'),
        filters: fc.array(filterCallOf(dialect, tie('expression')), { minLength: 1, maxLength: 3 }),
      }),
      fc.record({
        kind: fc.constant('otherwise' as const),
        alternatives: fc.array(tie('expression'), { minLength: 2, maxLength: 3 }),
      }),
      fc.record({ kind: fc.constant('not' as const), of: tie('expression') }),
      fc.record({ kind: fc.constant('list' as const), items: fc.array(tie('expression'), { maxLength: 3 }) }),
      fc.record({
        kind: fc.constant('object' as const),
        entries: fc.uniqueArray(fc.tuple(key, tie('expression')), {
          maxLength: 3,
          selector: ([name]) => name,
        }),
      }),
      fc.record({
        kind: fc.constantFrom('all' as const, 'any' as const),
        of: fc.array(tie('expression'), { minLength: 2, maxLength: 3 }),
      }),
      fc.record({
        kind: fc.constant('comparison' as const),
        first: tie('expression'),
        rest: fc.array(
          fc.record({ operator: fc.constantFrom(...comparisonOperators), right: tie('expression') }),
          { minLength: 1, maxLength: 3 },
        ),
      }),
      ...(['sum', 'product'] as const).map((kind) =>
        fc.record({
          kind: fc.constant(kind),
          first: tie('expression'),
          rest: fc.array(
            fc.record({ operator: fc.constantFrom(...arithmeticOperators[kind]), right: tie('expression') }),
            { minLength: 1, maxLength: 3 },
          ),
        }),
      ),
    ),
  })).expression;
}
