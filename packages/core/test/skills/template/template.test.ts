import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../../../test/support/runs.ts';
import type { Json } from '../../../src/contracts/primitives.ts';
import { isEqual } from '../../../src/expression/compare.ts';
import { readTemplate } from '../../../src/expression/template.ts';
import { deriveTemplate } from '../../../src/skills/derive-template.ts';
import { applyTemplate, parseTemplate, type TemplateResult } from '../../../src/skills/template.ts';
import { writeTemplate } from '../../../src/skills/write-template.ts';
import { anyJson } from './a-json.ts';

function apply(template: string | null, input: Json, match: Record<string, string> = {}): TemplateResult {
  const parsing = parseTemplate(template ?? '');
  if (!parsing.ok) throw new Error(parsing.message);
  return applyTemplate(parsing.template, { input, match });
}

function operationsOf(template: string | null): Json {
  return JSON.parse(template ?? 'null');
}

describe('parseTemplate', () => {
  it.each([
    ['[{"op":"remove","path":"/a"}]', 'patch'],
    ['Use 44100 Hz', 'text'],
    ['{{ input.name }} is enough', 'text'],
  ])('reads %s as %s', (text, kind) => {
    expect(parseTemplate(text)).toMatchObject({ ok: true, template: { kind } });
  });

  it.each([
    ['', /empty/],
    ['[', /JSON Patch has to be JSON/],
    [' {"rate": 44100}', /is no JSON Patch: send a list/],
    ['{a: 1}', /is no JSON Patch/],
    [
      '[{"op":"add","path":"/a","value":"{{ inptu.a }}"}]',
      /"inptu" is no root; there are input, match \(at character 3 in \/0\/value\); did you mean "input"/,
    ],
    ['[{"op":"add","path":"/a","value":"{{ job.a }}"}]', /"job" is no root/],
    ['[{"op":"add","path":"/a","value":"{{ input.a | evn }}"}]', /did you mean "even"/],
    ['say {{ input.__proto__ }}', /__proto__ is not allowed/],
    [
      '[{"op":"add","path":"/a","value":{"constructor": 1, "a": "{{ input.a }}"}}]',
      /constructor is not allowed/,
    ],
    [
      '[{"op":"add","path":"/a","value":"{{ input.a | default() }}"}]',
      /expected a path, a value or \(, found "\)"/,
    ],
  ])('refuses %s', (text, message) => {
    expect(parseTemplate(text)).toEqual({ ok: false, message: expect.stringMatching(message) });
  });

  it.each(['{{ input.a }}', '{{ match.g1 }}', '{{ job.a | even }}'])(
    'leaves %s refused in a pipeline definition',
    (text) => {
      expect(readTemplate(text).errors).toHaveLength(1);
    },
  );
});

describe('the filters of a skill', () => {
  it.each<[expression: string, value: Json, expected: Json | RegExp]>([
    ['int', '5', 5],
    ['int', 29.97, 29],
    ['int', '-0.5', 0],
    ['int', '44.1k', /text of a JSON number/],
    ['int', true, /a number or the text of one/],
    ['even', 1081, 1080],
    ['even', '1081', 1080],
    ['even', -3, -2],
    ['even', 4, 4],
    ['lower', 'H264', 'h264'],
    ['lower', 264, /lower takes a string/],
    ['default(30)', null, 30],
    ['default("x")', 0, 0],
    ['default(false)', '', ''],
  ])('%s of %j', (filter, value, expected) => {
    const result = apply(`{{ input | ${filter} }}`, value);
    if (expected instanceof RegExp)
      expect(result).toEqual({ ok: false, reason: expect.stringMatching(expected) });
    else expect(result).toEqual({ ok: true, input: expected });
  });

  it('gives the default for a missing value, and keeps an existing one', () => {
    const template = '[{"op":"add","path":"/fps","value":"{{ input.fps | default(30) }}"}]';
    expect(apply(template, { a: 1 })).toEqual({ ok: true, input: { a: 1, fps: 30 } });
    expect(apply(template, { fps: 24 })).toEqual({
      ok: false,
      reason: 'the template changes nothing in this input',
    });
  });
});

describe('writeTemplate', () => {
  it.each<[string, Json, Json, Json]>([
    [
      'guards a replaced value',
      { a: 1, b: 2 },
      { a: 1, b: 3 },
      [
        { op: 'test', path: '/b', value: 2 },
        { op: 'replace', path: '/b', value: 3 },
      ],
    ],
    [
      'guards a removed key',
      { a: { b: 1 }, c: 2 },
      { a: {}, c: 2 },
      [
        { op: 'test', path: '/a/b', value: 1 },
        { op: 'remove', path: '/a/b' },
      ],
    ],
    ['adds a key', {}, { a: [1] }, [{ op: 'add', path: '/a', value: [1] }]],
    [
      'removes an item',
      { l: ['aaaaaaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbbbbbbbbbbbb', 'c'] },
      { l: ['aaaaaaaaaaaaaaaaaaaa', 'c'] },
      [
        { op: 'test', path: '/l/1', value: 'bbbbbbbbbbbbbbbbbbbbbbbbbb' },
        { op: 'remove', path: '/l/1' },
      ],
    ],
    [
      'replaces a list where that is shorter',
      { l: [1, 2, 3, 4] },
      { l: [] },
      [
        { op: 'test', path: '/l', value: [1, 2, 3, 4] },
        { op: 'replace', path: '/l', value: [] },
      ],
    ],
    [
      'quotes what looks like an expression',
      { a: '{{' },
      { a: '{{ input.a }}' },
      [
        { op: 'test', path: '/a', value: { $literal: '{{' } },
        { op: 'replace', path: '/a', value: { $literal: '{{ input.a }}' } },
      ],
    ],
  ])('%s', (_, original, corrected, expected) => {
    expect(operationsOf(writeTemplate(original, corrected))).toEqual(expected);
  });

  it('writes nothing for no difference, or below a name that pointers may not hold', () => {
    expect(writeTemplate({ a: 1, b: 2 }, { b: 2, a: 1 })).toBeNull();
    expect(writeTemplate({}, JSON.parse('{"a":{},"__proto__":1}'))).toBeNull();
  });

  it('turns any input into any other, unless that is protected', () => {
    fc.assert(
      fc.property(anyJson, anyJson, (original, corrected) => {
        const template = writeTemplate(original, corrected);
        if (template === null) return isEqual(original, corrected);
        const result = apply(template, original);
        return result.ok
          ? isEqual(result.input, corrected)
          : /stays as it is|names the host/.test(result.reason);
      }),
      { numRuns: runs(250) },
    );
  });

  it('stops where what it replaces or removes has become another, and leaves the rest alone', () => {
    const keys = ['a', 'b', 'c'] as const;
    const aValue = fc.constantFrom<Json>(0, 1, '0', null, [0], [0, 1]);
    const input = fc.record({ a: aValue, b: aValue, c: aValue });
    fc.assert(
      fc.property(input, input, input, (original, corrected, other) => {
        const template = writeTemplate(original, corrected);
        if (template === null) return;
        const result = apply(template, other);
        const changed = keys.filter((key) => !isEqual(original[key], corrected[key]));
        const isSeen = changed.every((key) => isEqual(original[key], other[key]));
        const kept = Object.fromEntries(changed.map((key) => [key, corrected[key]]));
        // A list is guarded item by item where that is shorter: then [0] and [0, 1] may both apply
        if (isSeen) expect(result).toEqual({ ok: true, input: { ...other, ...kept } });
        else if (!JSON.stringify(original).includes('[')) expect(result.ok).toBe(false);
      }),
    );
  });

  it('does not add over what another input already has', () => {
    const template = writeTemplate({ a: 1 }, { a: 1, rate: 44100 });
    expect(apply(template, { a: 2 })).toEqual({ ok: true, input: { a: 2, rate: 44100 } });
    expect(apply(template, { rate: 48000 })).toEqual({
      ok: false,
      reason: expect.stringMatching(/did not expect/),
    });
  });
});

describe('deriveTemplate', () => {
  it.each<[string, Json, Json, Record<string, string>, Json]>([
    [
      'a coerced number',
      { fps: '30' },
      { fps: 30 },
      {},
      [{ op: 'replace', path: '/fps', value: '{{ input.fps | number }}' }],
    ],
    [
      'a number without its fraction',
      { start: 12.75 },
      { start: 12 },
      {},
      [{ op: 'replace', path: '/start', value: '{{ input.start | int }}' }],
    ],
    [
      'an even width',
      { v: [{ width: 1081 }] },
      { v: [{ width: 1080 }] },
      {},
      [{ op: 'replace', path: '/v/0/width', value: '{{ input.v[0].width | even }}' }],
    ],
    [
      'a lower case',
      { 'co dec': 'H264' },
      { 'co dec': 'h264' },
      {},
      [{ op: 'replace', path: '/co dec', value: '{{ input["co dec"] | lower }}' }],
    ],
    [
      'a number of the error',
      { w: 9000 },
      { w: 4096 },
      { g1: '9000', g2: '4096' },
      [{ op: 'replace', path: '/w', value: '{{ match.g2 | number }}' }],
    ],
    [
      'a text of the error',
      {},
      { key: 'x1' },
      { g1: 'x1' },
      [{ op: 'add', path: '/key', value: '{{ match.g1 }}' }],
    ],
    ['a misspelt key', { widht: 5 }, { width: 5 }, {}, [{ op: 'move', from: '/widht', path: '/width' }]],
    [
      'no ambiguous group',
      { w: 9 },
      { w: 4 },
      { g1: '4', g2: '4' },
      [
        { op: 'test', path: '/w', value: 9 },
        { op: 'replace', path: '/w', value: 4 },
      ],
    ],
    [
      'no key of another name',
      { debug: 5 },
      { width: 5 },
      {},
      [
        { op: 'test', path: '/debug', value: 5 },
        { op: 'remove', path: '/debug' },
        { op: 'add', path: '/width', value: 5 },
      ],
    ],
  ])('derives %s', (_, input, corrected, match, expected) => {
    const template = deriveTemplate({ input, match }, corrected, 'width must be even; key: expected x1');
    expect(operationsOf(template)).toEqual(expected);
    expect(apply(template, input, match)).toEqual({ ok: true, input: corrected });
  });

  it('never rewrites 48k because 44.1k was corrected', () => {
    const template = deriveTemplate(
      { input: { rate: '44.1k' }, match: { g1: '44.1k' } },
      { rate: 44100 },
      '',
    );
    expect(apply(template, { rate: '44.1k' })).toEqual({ ok: true, input: { rate: 44100 } });
    expect(apply(template, { rate: '48k' })).toEqual({
      ok: false,
      reason: expect.stringMatching(/another value/),
    });
  });

  it.each<[string, Json, Json, Record<string, string>, string]>([
    [
      'an even number may be the nearest rate',
      { a: 44_101 },
      { a: 44_100 },
      {},
      'rate 44101 is not supported',
    ],
    ['a dropped fraction may be rounded', { a: 12.25 }, { a: 12 }, {}, 'frame 12.25 must be whole'],
    [
      'a number may be of something else',
      { a: 6 },
      { a: 2 },
      { g1: '2', g2: '6' },
      'segment 2 has 6 channels',
    ],
  ])(
    'writes a guarded value where the rule may be a coincidence: %s',
    (_, input, corrected, match, error) => {
      const template = deriveTemplate({ input, match }, corrected, error);
      expect(operationsOf(template)).toMatchObject([{ op: 'test' }, { op: 'replace' }]);
    },
  );

  it('takes a short number of the error that is named as the bound', () => {
    const error = 'fps must be <= 60, got 90';
    const template = deriveTemplate(
      { input: { fps: 90 }, match: { g1: '60', g2: '90' } },
      { fps: 60 },
      error,
    );
    expect(operationsOf(template)).toEqual([
      { op: 'replace', path: '/fps', value: '{{ match.g1 | number }}' },
    ]);
  });

  it('corrects the next mistake of the same kind', () => {
    const template = deriveTemplate({ input: { fps: '30' }, match: {} }, { fps: 30 }, '');
    expect(apply(template, { fps: '24', more: 1 })).toEqual({ ok: true, input: { fps: 24, more: 1 } });
    expect(apply(template, { fps: 'many' })).toMatchObject({ ok: false });
  });

  it('gives exactly the corrected input, whatever it generalises', () => {
    const match = fc.dictionary(fc.constantFrom('g1', 'g2'), fc.constantFrom('5', 'x', '', '1'));
    fc.assert(
      fc.property(anyJson, anyJson, match, (input, corrected, groups) => {
        const template = deriveTemplate({ input, match: groups }, corrected, '');
        if (template === null) return isEqual(input, corrected);
        const result = apply(template, input, groups);
        return result.ok
          ? isEqual(result.input, corrected)
          : /stays as it is|names the host/.test(result.reason);
      }),
      { numRuns: runs(250) },
    );
  });
});

it('applies any template to any input without failing', () => {
  const pointer = fc.constantFrom('', '/a', '/a/0', '/a/-', '/b', '/b/a', '/~1');
  const value = fc.oneof(
    anyJson,
    fc.constantFrom('{{ input.a }}', '{{ match.g1 | int }}', '{{ input.b[0] | even }}'),
  );
  const operation = fc.record({
    op: fc.constantFrom('test', 'add', 'replace', 'remove', 'move', 'copy'),
    path: pointer,
    from: pointer,
    value,
  });
  const input = fc.dictionary(fc.constantFrom('a', 'b', '/'), anyJson);
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 4 }), input, (operations, document) => {
      const parsing = parseTemplate(JSON.stringify(operations));
      if (parsing.ok) applyTemplate(parsing.template, { input: document, match: { g1: '1' } });
    }),
  );
});
