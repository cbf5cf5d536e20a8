import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Json } from '../../../../src/contracts/primitives.ts';
import { isEqual } from '../../../../src/core/expression/equality.ts';
import { applyTemplate } from '../../../../src/core/skills/template/apply-template.ts';
import { convertMergePatch } from '../../../../src/core/skills/template/convert-merge.ts';
import { applyMergePatch } from '../../../../src/core/skills/template/merge-patch.ts';
import { parseTemplate } from '../../../../src/core/skills/template/template.ts';
import { anyJson } from './a-json.ts';

// RFC 7386, appendix A
const examples: [target: Json, patch: Json, result: Json][] = [
  [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
  [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
  [{ a: 'b' }, { a: null }, {}],
  [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
  [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
  [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
  [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
  [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
  [
    ['a', 'b'],
    ['c', 'd'],
    ['c', 'd'],
  ],
  [{ a: 'b' }, ['c'], ['c']],
  [{ a: 'foo' }, null, null],
  [{ a: 'foo' }, 'bar', 'bar'],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [[1, 2], { a: 'b', c: null }, { a: 'b' }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
];

it.each(examples)('merges %j and %j to %j', (target, patch, result) => {
  expect(applyMergePatch(target, patch)).toEqual(result);
});

function apply(template: string, input: Json) {
  const parsing = parseTemplate(template);
  return parsing.ok ? applyTemplate(parsing.template, { input, match: { g1: '44100' } }) : parsing;
}

it('becomes a JSON Patch that does the same to the input it was made for', () => {
  // A plain merge patch knows no expressions and no quotes
  const plain = anyJson.filter((merge) => !/\{\{|\$literal/.test(JSON.stringify(merge)));
  const object = fc.dictionary(fc.constantFrom('a', 'b', 'c/d'), plain, { maxKeys: 3 });
  fc.assert(
    fc.property(object, object, (merge, original) => {
      const merged = applyMergePatch(original, merge);
      const template = convertMergePatch(merge, original);
      if (template === null) return isEqual(merged, original);
      expect(apply(template, original)).toEqual({
        ok: true,
        input: expect.toSatisfy((input) => isEqual(input, merged)),
      });
      return true;
    }),
  );
});

it('guards the literals of a merge patch, and not its expressions', () => {
  const original = { rate: '44.1k', codec: 'AAC', size: { w: 5 } };
  const merge = { rate: 44100, codec: '{{ input.codec | lower }}', size: { w: { $literal: '{{' } }, fps: 30 };
  const template = convertMergePatch(merge, original) ?? '';
  expect(JSON.parse(template)).toEqual([
    { op: 'test', path: '/rate', value: '44.1k' },
    { op: 'replace', path: '/rate', value: 44100 },
    { op: 'replace', path: '/codec', value: '{{ input.codec | lower }}' },
    { op: 'test', path: '/size/w', value: 5 },
    { op: 'replace', path: '/size/w', value: { $literal: '{{' } },
    { op: 'add', path: '/fps', value: 30 },
  ]);
  expect(apply(template, original)).toEqual({
    ok: true,
    input: { rate: 44100, codec: 'aac', size: { w: '{{' }, fps: 30 },
  });
  expect(apply(template, { ...original, rate: '48k' })).toMatchObject({ ok: false });
});

it('does not apply before it is converted', () => {
  expect(apply('{"rate": 44100}', { rate: '48k' })).toEqual({
    ok: false,
    reason: expect.stringMatching(/JSON Patch/),
  });
});
