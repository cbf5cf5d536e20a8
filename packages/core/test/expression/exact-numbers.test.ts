import { describe, expect, test } from 'vitest';
import { parseExactJson, writeExactJson } from '../../src/contracts/exact-json.ts';
import type { Json } from '../../src/contracts/primitives.ts';
import { evaluateTemplate } from '../../src/expression/evaluate.ts';
import type { ExpressionScope } from '../../src/expression/evaluation.ts';
import { compileTemplate } from '../../src/expression/template.ts';

const id = '7615917337495251231';
const answer = `{"id":${id},"same":${id}.0,"near":7615917337495251000,"list":[{"id":${id}},{"id":1}],"at":1700000000.123456789}`;
const scope = {
  job: { id },
  steps: { a: { status: 'succeeded', output: parseExactJson(answer) as Json } },
} as unknown as ExpressionScope;

/** The JSON text of the value. */
function evaluate(template: Json): string {
  return writeExactJson(evaluateTemplate(compileTemplate(template), scope));
}

describe('a number of an answer that no double keeps', () => {
  test.each<[Json, string]>([
    ['{{ steps.a.output }}', answer],
    ['{{ steps.a.output.id }}', id],
    [{ x: ['{{ steps.a.output.list[0] }}'] }, `{"x":[{"id":${id}}]}`],
    ['{{ steps.a.output.list[*].id }}', `[${id},1]`],
    ['{{ steps.a.output.list | map("id") | first }}', id],
    ['{{ steps.a.output.list | where("id" == steps.a.output.same) | length }}', '1'],
    ['{{ steps.a.output.none ?? steps.a.output.id }}', id],
    ['{{ steps.a.output.id | string }}', `"${id}"`],
    ['id {{ steps.a.output.id }} at {{ steps.a.output.at }}', `"id ${id} at 1700000000.123456789"`],
    ['{{ steps.a.output.list | json }}', JSON.stringify(`[{"id":${id}},{"id":1}]`)],
    ['{{ steps.a.output.list | json | parse_json }}', `[{"id":${id}},{"id":1}]`],
    ['{{ steps.a.output.list[*].id | unique | length }}', '2'],
    ['{{ steps.a.output.list[*].id | join(",") }}', `"${id},1"`],
    ['{{ job.id | number }}', id],
    ['{{ steps.a.output.id | number }}', id],
    ['{{ (steps.a.output.id == steps.a.output.same) }}', 'true'],
    ['{{ (steps.a.output.id == steps.a.output.near) }}', 'false'],
    ['{{ (steps.a.output.id in steps.a.output.list[*].id) }}', 'true'],
    ['{{ (steps.a.output.id == job.id) }}', 'false'],
  ])('is kept by %j', (template, expected) => {
    expect(evaluate(template)).toBe(expected);
  });

  test.each([
    'steps.a.output.id + 1',
    '2 * steps.a.output.id',
    'steps.a.output.id > 5',
    'steps.a.output.id | round',
    'steps.a.output.at | floor',
    'steps.a.output.list[*].id | sum',
    'steps.a.output.list[*].id | sort',
    'steps.a.output.list[*].id | max',
    'steps.a.output.list | sort_by("id")',
    'steps.a.output.id | timestamp',
    'steps.a.output.id && true',
    'steps.a.output.id | length',
    'steps.a.output.list | where("id" > 5)',
  ])('is named where %s would change it', (expression) => {
    expect(() => evaluate(`{{ (${expression}) }}`)).toThrow(
      /a number of 19 digits, more than a calculation keeps/,
    );
  });
});

test.each(['9007199254740993', '1e999', '-0.1234567890123456789012'])('no expression holds %s', (written) => {
  expect(() => compileTemplate(`{{ (job.n == ${written}) }}`)).toThrow(`the number ${written}`);
});
