import { describe, expect, it } from 'vitest';
import { countProcessorMs } from '../../../../test/support/processor-time.ts';
import type { Json, JsonObject } from '../../src/contracts/primitives.ts';
import { nameDistance } from '../../src/repair/names.ts';
import { applyRepair, proposeRepairs, type RepairQuestion } from '../../src/repair/propose-repairs.ts';
import { createSchemaCompiler } from '../../src/schemas/schema-compiler.ts';
import { brokenInputs } from './broken-inputs.ts';
import { inputChecks, playBrokenInput } from './play-broken-input.ts';

const { compile } = createSchemaCompiler();
const samples = brokenInputs.filter(({ capability }) => capability !== 'transcode');

function repair(schema: JsonObject, input: Json) {
  return proposeRepairs({ schema, input, errorsOf: compile(schema).find });
}

function closed(properties: JsonObject, required: readonly string[] = []): JsonObject {
  return {
    type: 'object',
    properties,
    required,
    additionalProperties: false,
  };
}

describe('the inputs that authors get wrong', () => {
  it('are wrong, and what a person would send instead is right', () => {
    expect(samples.length).toBeGreaterThanOrEqual(50);
    for (const { capability, mistake, input, answer } of brokenInputs) {
      expect(inputChecks[capability](input), `${capability}: ${mistake}`).not.toEqual([]);
      if (answer !== null) expect(inputChecks[capability](answer), mistake).toEqual([]);
    }
  });

  it.each(brokenInputs)('$capability, $mistake: $outcome', (broken) => {
    const { outcome, isWrong, isAnswered } = playBrokenInput(broken);
    expect({ outcome, isWrong }).toEqual({ outcome: broken.outcome, isWrong: false });
    if (outcome !== 'left') expect(isAnswered).toBe(broken.answer !== null);
  });
});

describe('a repair', () => {
  it('is a JSON Patch guarded by what it changes', () => {
    expect(repair(closed({ width: { type: 'integer' } }), { width: '5' })).toEqual({
      proposals: [expect.anything()],
      applicable: {
        kind: 'coerce',
        way: 'number',
        pointer: '/width',
        operations: [
          { op: 'test', path: '/width', value: '5' },
          { op: 'replace', path: '/width', value: 5 },
        ],
        description: 'read "5" as 5 at /width, because the schema wants a number there',
      },
    });
  });

  it('has no finding for a valid input', () => {
    expect(repair({}, { a: 1 })).toEqual({ proposals: [], applicable: null });
  });

  it('shows all cures and applies none when there are two', () => {
    const schema = { oneOf: [closed({ low: { maximum: 10 } }), closed({ low: { minimum: 14 } })] };
    const { proposals, applicable } = repair(schema, { low: 12 });
    expect(proposals.map(({ description }) => description)).toEqual([
      'take 10 for 12 at /low, because it is the nearest allowed',
      'take 14 for 12 at /low, because it is the nearest allowed',
    ]);
    expect(applicable).toBeNull();
  });

  it('cures the one branch of a union that was meant', () => {
    const kinds = ['still', 'moving'].map((kind) =>
      closed({ kind: { const: kind }, [`of_${kind}`]: { type: 'integer' } }, ['kind', `of_${kind}`]),
    );
    const { applicable } = repair({ oneOf: kinds }, { kind: 'Moving', of_moving: 1 });
    expect(applicable?.operations.at(-1)).toEqual({ op: 'replace', path: '/kind', value: 'moving' });
  });

  it.each<[string, JsonObject, Json, Json]>([
    ['the only value', { const: 'v2' }, 'v2', null],
    ['the default', { type: 'integer', default: 3 }, 3, null],
    ['no default where something unknown may be meant', { type: 'integer', default: 3 }, null, 4],
  ])('fills a missing key with %s', (_, property, value, unknown) => {
    const schema = { properties: { mode: property }, required: ['mode'] };
    const { applicable, proposals } = repair(schema, unknown === null ? {} : { other: unknown });
    expect(proposals).toHaveLength(1);
    expect(applicable?.operations ?? null).toEqual(
      value === null ? null : [{ op: 'add', path: '/mode', value }],
    );
  });

  it.each<[string, JsonObject, JsonObject]>([
    ['by its default', { output_path: { default: 'media://a/b', type: 'string' } }, {}],
    ['by trimming', { to: { enum: ['https://a.example/'] } }, { to: ' https://a.example/' }],
    ['by spelling', { to: { enum: ['https://a.example/'] } }, { to: 'https://A.example/' }],
    ['by reading it', { output_path: { type: 'string' } }, { output_path: 7 }],
    ['by leaving it out', {}, { deep: [{ url: 'https://a.example/' }] }],
    ['by leaving null out', { output_path: { type: 'string' } }, { output_path: null }],
  ])('never touches a reference or the output path: %s', (_, properties, input) => {
    const required = Object.keys(properties).filter((name) => !Object.hasOwn(input, name));
    expect(repair(closed(properties, required), input)).toEqual({ proposals: [], applicable: null });
  });

  it.each<[string, JsonObject, Json, Json | null]>([
    ['one of several types', closed({ a: { type: ['integer', 'null'] } }), { a: '5' }, { a: 5 }],
    [
      'one of several types',
      { properties: { a: { anyOf: [{ type: 'integer' }, { type: 'boolean' }] } } },
      { a: 'true' },
      { a: true },
    ],
    ['a number beyond a bound', closed({ a: { type: 'integer', exclusiveMaximum: 9 } }), { a: 9 }, null],
    ['an error of rounding', closed({ a: { maximum: 0.3 } }), { a: 0.1 + 0.2 }, { a: 0.3 }],
    ['a text in an enum', closed({ a: { enum: ['720', '1080'] } }), { a: 720 }, { a: '720' }],
    ['an item of a list', { items: { type: 'integer' } }, [1, '2'], [1, 2]],
    ['an unknown key with a meaning', closed({ a: {} }), { a: 1, more: 2 }, null],
    ['an unknown key without a value', closed({ a: {} }), { a: 1, more: null }, { a: 1 }],
    ['an unknown key, where one is left', closed({ a: {}, b: { type: 'object' } }), { a: 1, more: 2 }, null],
    ['a misspelt key with a wrong value', closed({ width: { type: 'integer' } }), { widht: 'wide' }, null],
    [
      'a known key that is wrong',
      { properties: { a: { type: 'integer' } }, unevaluatedProperties: false },
      { a: 'x' },
      null,
    ],
    [
      'a default next to a misspelt key',
      { properties: { crf: { type: 'integer', default: 3 } }, required: ['crf'] },
      { CRF: 'high' },
      null,
    ],
    [
      'a number that is another one without its point',
      closed({ a: { enum: ['10', '20'] } }),
      { a: '1.0' },
      null,
    ],
    ['a sign that means something', closed({ a: { enum: ['c', 'go'] } }), { a: 'c++' }, null],
    ['too many items', { maxItems: 1, items: { type: 'integer' } }, [1, 2], null],
  ])('applies what is certain and nothing else: %s', (_, schema, input, repaired) => {
    const { applicable } = repair(schema, input);
    expect(applicable === null ? null : applyRepair(input, applicable.operations)).toEqual(repaired);
  });

  it.each([
    ['min_width', 'max_width'],
    ['input_path', 'output_path'],
    ['start_x', 'start_y'],
    ['at_s', 'at_ms'],
    ['mode', 'code'],
    ['clip2', 'clips'],
    ['mp3', 'mp4'],
    ['in', 'out'],
    ['music', 'music_gain_db'],
    ['_width', 'width'],
  ])('takes no name for another: %s is not %s', (name, known) => {
    expect(nameDistance(name, known)).toBeNull();
    expect(nameDistance(known, name)).toBeNull();
  });

  it('takes no names that reach a prototype', () => {
    const input = JSON.parse('{"__proto_": {"a": 1}}');
    const schema = JSON.parse('{"required": ["__proto__"]}');
    expect(repair(schema, input).proposals).toEqual([]);
  });

  it('goes no further than references that lead back', () => {
    const schema = {
      $ref: '#/$defs/node',
      $defs: { node: { properties: { next: { $ref: '#/$defs/node' }, at: { type: 'integer' } } } },
    };
    const { applicable } = repair(schema, { next: { next: { at: '1' } } });
    expect(applicable?.pointer).toBe('/next/next/at');
  });
});

describe('the work of a repair', () => {
  const items = { items: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] } };
  const list = (length: number, item: (at: number) => Json): Json =>
    Array.from({ length }, (_, at) => item(at));

  it.each<[string, JsonObject, Json]>([
    ['everything is wrong', items, list(80_000, (at) => ({ n: `${at}` }))],
    ['one of many is wrong', items, list(80_000, (at) => ({ n: at === 79_999 ? '1' : at }))],
    ['four are wrong', items, list(80_000, (at) => ({ n: at % 20_000 === 0 ? '1' : at }))],
    [
      'no key is known',
      closed({ width: {} }, ['width']),
      Object.fromEntries(Array.from({ length: 60_000 }, (_, at) => [`widt${at}`, at])),
    ],
    ['a text is long', closed({ a: { enum: ['a'] } }), { a: ' '.repeat(1_000_000) }],
    ['two names are long', closed({ [`a${'b'.repeat(100_000)}`]: {} }), { [`a${'c'.repeat(1_000_000)}`]: 1 }],
  ])('is small for a MiB where %s', (_, schema, input) => {
    const errorsOf = compile(schema).find;
    let spentInChecks = 0;
    let checks = 0;
    const counted: RepairQuestion['errorsOf'] = (value) => {
      const spentMs = countProcessorMs();
      const findings = errorsOf(value);
      spentInChecks += spentMs();
      checks++;
      return findings;
    };
    const spentMs = countProcessorMs();
    proposeRepairs({ schema, input, errorsOf: counted });
    expect(spentMs() - spentInChecks).toBeLessThan(200);
    expect(checks).toBeLessThanOrEqual(1 + 4);
  });

  it('tries no more than 32 inputs, and is not sure of one where there may be more', () => {
    const name = 'abcdefghijkl';
    const typos = [...name]
      .slice(1)
      .flatMap((_, at) =>
        [...'wxyz'].map((letter) => `${name.slice(0, at + 1)}${letter}${name.slice(at + 2)}`),
      );
    const near = Object.fromEntries(typos.map((typo, at) => [typo, at]));
    const schema = { required: [name], properties: { [name]: { const: 0 } } };
    let checks = 0;
    const errorsOf: RepairQuestion['errorsOf'] = (value) => {
      checks++;
      return compile(schema).find(value);
    };
    const { applicable } = proposeRepairs({ schema, input: near, errorsOf });
    expect({ checks, applicable }).toEqual({ checks: 33, applicable: null });
  });
});
