import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { countProcessorMs } from '../../../../test/support/processor-time.ts';
import type { Json } from '../../src/contracts/primitives.ts';
import { evaluateTemplate } from '../../src/expression/evaluate.ts';
import type { ExpressionScope } from '../../src/expression/evaluation.ts';
import {
  chooseReferences,
  findListedStep,
  keepFields,
  mentionsOf,
  partsOfOutput,
} from '../../src/expression/large-outputs.ts';
import { compileTemplate } from '../../src/expression/template.ts';

const parts = fc.uniqueArray(fc.record({ name: fc.string(), bytes: fc.nat(100) }), {
  selector: ({ name }) => name,
});

describe('parts of an output', () => {
  test('fit when the chosen ones are left out, and no chosen one would fit with those that are no larger', () => {
    fc.assert(
      fc.property(parts, fc.nat(300), (all, limit) => {
        const chosen = chooseReferences(all, limit);
        const sum = (some: typeof all) => some.reduce((bytes, part) => bytes + part.bytes, 0);
        const kept = all.filter(({ name }) => !chosen.has(name));
        expect(sum(kept)).toBeLessThanOrEqual(limit);
        for (const part of all.filter(({ name }) => chosen.has(name)))
          expect(sum(kept) + part.bytes).toBeGreaterThan(limit);
      }),
    );
  });

  test('are the members of an object, or the whole', () => {
    expect([...partsOfOutput(compileTemplate({ a: '{{ job.x }}', b: 1 })).keys()]).toEqual(['a', 'b']);
    expect([...partsOfOutput(compileTemplate(['{{ job.x }}'])).keys()]).toEqual(['']);
  });
});

describe('of the list of a step', () => {
  test.each<[Json, object | undefined]>([
    ['{{ steps.m.output | length }}', {}],
    ['{{ (((steps.m.output ?? []) | length) > 3) }}', {}],
    ['{{ steps.m.output | default([]) | length }}', {}],
    ['{{ steps.m.output[3].name }}', { items: new Set([4]) }],
    ['{{ steps.m.output | first }}', { items: new Set([1]) }],
    [['{{ steps.m.output | last }}', '{{ steps.m.output[0] }}'], { items: new Set(['last', 1]) }],
    ['{{ steps.m.output[*].a.b[0].c | sum }}', { fields: [['a', 'b']] }],
    ['{{ steps.m.output | map("a") | length }}', { fields: [['a']] }],
    ['{{ steps.m.output[*] }}', { fields: [[]] }],
    ['{{ steps.m.output }}', { isWhole: true }],
    ['{{ steps.m.output | reverse | length }}', { isWhole: true }],
    ['{{ steps.m.output | length }} {{ steps.m.output | json }}', { isWhole: true }],
    ['{{ [steps.m.output] | length }}', { isWhole: true }],
    ['{{ (steps.m.output == steps.n.status) }}', { isWhole: true }],
    ['{{ steps.m.status }}', {}],
  ])('%j needs', (template, needs) => {
    const [mention] = mentionsOf(compileTemplate(template));
    expect(mention).toMatchObject({
      step_id: 'm',
      needs: { isWhole: false, items: new Set(), fields: [], ...needs },
    });
  });

  test('an expression gives the same of its needed parts as of the whole', () => {
    const item = fc.letrec<{ item: Json }>((tie) => ({
      item: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom<Json>(null, 1, 'x'),
        fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('item')),
        fc.array(tie('item'), { maxLength: 2 }),
      ),
    })).item;
    const paths = [
      '[*].a',
      '[*].a.b',
      '[*].b[0].a',
      '[*].a[*].b',
      ' | map("c")',
      ' | length',
      '[1].a',
      ' | last',
    ];
    fc.assert(
      fc.property(fc.array(item, { maxLength: 4 }), fc.constantFrom(...paths), (list, path) => {
        const template = compileTemplate(`{{ (steps.m.output${path}) ?? "none" }}`);
        const [mention] = mentionsOf(template);
        const { items = new Set(), fields = [], isWhole } = mention?.needs ?? {};
        expect(isWhole).toBe(false);
        const part = list.map((value, at): Json => {
          const isWanted = items.has(at + 1) || (items.has('last') && at === list.length - 1);
          return isWanted ? value : fields.length > 0 ? keepFields(value, fields) : null;
        });
        const evaluate = (output: Json) => {
          try {
            return evaluateTemplate(template, { steps: { m: { output } } } as unknown as ExpressionScope);
          } catch {
            return 'an error';
          }
        };
        expect(evaluate(part)).toEqual(evaluate(list));
      }),
    );
  });

  test.each([
    ['{{ steps.m.output }}', 'm'],
    ['{{ steps.m.output.list }}', null],
    ['{{ steps.m.output | reverse }}', null],
    ['{{ job.list }}', null],
  ])('%s is the whole list of step %s', (template, step) => {
    expect(findListedStep(compileTemplate(template))).toBe(step);
  });
});

test('the fields of an item are found in one pass over its paths', () => {
  const count = 40_000;
  const names = Array.from({ length: count }, (_, at) => `k${at}`);
  const item = Object.fromEntries(names.map((name) => [name, { a: name, b: 0 }]));
  const spentMs = countProcessorMs();
  const kept = keepFields(
    item,
    names.map((name) => [name, 'a']),
  );
  expect(spentMs()).toBeLessThan(2_000); // some tens: pass by pass it is ten times as much as that
  expect(kept).toEqual(Object.fromEntries(names.map((name) => [name, { a: name }])));
});
