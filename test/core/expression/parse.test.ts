import fc from 'fast-check';
import { expect, it } from 'vitest';
import { comparisonOperators, type Expression, type Segment } from '../../../src/core/expression/ast.ts';
import { filterNames, filters } from '../../../src/core/expression/filters.ts';
import { rootNames } from '../../../src/core/expression/roots.ts';
import { compileTemplate } from '../../../src/core/expression/template.ts';
import { printExpression } from './print-expression.ts';

const segment: fc.Arbitrary<Segment> = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('a', 'a-b', '_x9', 'in', 'true', '[*]', '{{', '}}', '"', "'"),
  fc.nat(),
  fc.constant({ each: true } as const),
);

const filterCall = fc.constantFrom(...filterNames).chain((name) =>
  fc.record({
    name: fc.constant(name),
    argument: filters[name].argument === 'string' ? fc.string() : fc.constant(null),
  }),
);

const { expression } = fc.letrec<{ expression: Expression; simple: Expression }>((tie) => ({
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
      root: fc.constantFrom(...rootNames),
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
      filters: fc.array(filterCall, { minLength: 1, maxLength: 3 }),
    }),
    fc.record({
      kind: fc.constant('otherwise' as const),
      alternatives: fc.array(tie('expression'), { minLength: 2, maxLength: 3 }),
    }),
    fc.record({ kind: fc.constant('not' as const), of: tie('expression') }),
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
  ),
}));

const withoutOffsets = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (key, part) => (key === 'offset' ? 0 : part)));

it('parses what is printed back to the same tree', () => {
  fc.assert(
    fc.property(expression, (tree) => {
      const { root } = compileTemplate(`{{ ${printExpression(tree)} }}`);
      expect(root.kind === 'expression' && withoutOffsets(root.expression)).toEqual(withoutOffsets(tree));
    }),
    { numRuns: 1_000 },
  );
});
