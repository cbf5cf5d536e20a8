import fc from 'fast-check';
import { expect, it } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { pipelineDialect, skillDialect } from '../../src/expression/filters.ts';
import { compileTemplate } from '../../src/expression/template.ts';
import { expressionOf } from './expression-trees.ts';
import { printExpression } from './print-expression.ts';

function withoutOffsets(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, part) => (key === 'offset' ? 0 : part)));
}

it.each([
  ['pipelines', pipelineDialect],
  ['skills', skillDialect],
] as const)('parses what is printed back to the same tree, in %s', (_, dialect) => {
  fc.assert(
    fc.property(expressionOf(dialect), (tree) => {
      const { root } = compileTemplate(`{{ ${printExpression(tree)} }}`, '', dialect);
      expect(root.kind === 'expression' && withoutOffsets(root.expression)).toEqual(withoutOffsets(tree));
    }),
    { numRuns: runs(250) },
  );
});
