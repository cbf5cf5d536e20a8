import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '../../src/contracts/primitives.ts';
import type { ExpressionScope } from '../../src/expression/evaluation.ts';
import { ExpressionError } from '../../src/expression/language.ts';
import { isForbiddenName } from '../../src/json/values.ts';
import { aJob, aScope, evaluateIn } from './a-scope.ts';

const clips = {
  clips: [
    { path: 'a.mp4', tags: ['x', 'y'] },
    { path: 'b.mp4', tags: ['z'] },
  ],
};
const ran = aScope({
  job: { name: 'trailer' },
  steps: {
    cut: { output: { path: 'media://j/o/cut.mp4', ms: 1200 }, status: 'succeeded', cost_usd: 0.25 },
    'a-b': { output: { ok: true } },
    failed: { status: 'failed', error: { code: 'input_rejected', message: 'no' } },
  },
  item: { n: 1 },
  index: 3,
});

const resolved: [template: Json, scope: ExpressionScope, expected: Json][] = [
  // Types are kept when the string is exactly one expression
  ['{{ job.n }}', aJob({ n: 42 }), 42],
  ['{{job.n}}', aJob({ n: '42' }), '42'],
  ['{{ job.n }}', aJob({ n: null }), null],
  ['{{ job.n }}', aJob({ n: [1, { a: false }] }), [1, { a: false }]],
  ['{{ job }}', aJob({ a: 1 }), { a: 1 }],
  [' {{ job.n }}', aJob({ n: 42 }), ' 42'],
  // Embedding
  ['a {{ job.s }}-{{ job.n }}-{{ job.b }} z', aJob({ s: 'x y', n: 1.5, b: true }), 'a x y-1.5-true z'],
  ['{{ job.a }}{{ job.b }}', aJob({ a: 1, b: 2 }), '12'],
  ['{"a":{{ job.a | json }}}', aJob({ a: { b: [1] } }), '{"a":{"b":[1]}}'],
  ['x{{ job.a ?? "" }}', aJob({ a: null }), 'x'],
  ['no expression } }} { here', aJob({}), 'no expression } }} { here'],
  // Results are never scanned again; escapes; keys
  ['{{ job.a }}', aJob({ a: '{{ job.b }}', b: 1 }), '{{ job.b }}'],
  ['> {{ job.a }}', aJob({ a: '{{ job.b }}', b: 1 }), '> {{ job.b }}'],
  ["{{ '{{' }}", aJob({}), '{{'],
  ["write {{ '{{' }} job.x }}", aJob({}), 'write {{ job.x }}'],
  ['{{ "}}" }}', aJob({}), '}}'],
  [{ '{{ job.a }}': '{{ job.a }}' }, aJob({ a: 1 }), { '{{ job.a }}': 1 }],
  [{ $literal: { a: '{{ job.a }}', $literal: 1 } }, aJob({}), { a: '{{ job.a }}', $literal: 1 }],
  [{ x: [{ $literal: '{{' }, '{{ job.a }}'] }, aJob({ a: 1 }), { x: ['{{', 1] }],
  [{ $literal: null }, aJob({}), null],
  // Paths
  ['{{ steps.cut.output.path }}', ran, 'media://j/o/cut.mp4'],
  ['{{ steps.a-b.output.ok }}', ran, true],
  ['{{ steps["cut"].status }}', ran, 'succeeded'],
  ["{{ steps['cut'].cost_usd }}", ran, 0.25],
  ['{{ steps.failed.error.code }}', ran, 'input_rejected'],
  ['{{ run.id }}/{{ run.attempt }}', ran, 'run_1/1'],
  ['{{ item.n }}{{ index }}', ran, '13'],
  ['{{ job.in.null.true }}', aJob({ in: { null: { true: 1 } } }), 1],
  ['{{ job["a b"]["\\u0022"] }}', aJob({ 'a b': { '"': 7 } }), 7],
  ['{{ job.l[1] }}', aJob({ l: [1, 2] }), 2],
  ['{{ job.clips[*].path }}', aJob(clips), ['a.mp4', 'b.mp4']],
  ['{{ job.clips[*].tags[*] }}', aJob(clips), [['x', 'y'], ['z']]],
  ['{{ job.clips[*].tags[0] }}', aJob(clips), ['x', 'z']],
  ['{{ job.none[*].path }}', aJob({ none: [] }), []],
  // Defaults cover missing and null, nothing else
  ['{{ job.a ?? "d" }}', aJob({}), 'd'],
  ['{{ job.a ?? "d" }}', aJob({ a: null }), 'd'],
  ['{{ job.a ?? "d" }}', aJob({ a: false }), false],
  ['{{ job.a ?? "d" }}', aJob({ a: '' }), ''],
  ['{{ job.a.b.c ?? 1 }}', aJob({ a: null }), 1],
  ['{{ job.a ?? job.b ?? null }}', aJob({}), null],
  ['{{ job.a ?? job.b }}', aJob({ b: null }), null],
  ['{{ steps.skipped.output.x ?? 0 }}', ran, 0],
  ['{{ job.l[9] ?? "none" }}', aJob({ l: [] }), 'none'],
  ['{{ job.l[*].x ?? "none" }}', aJob({ l: [{ x: 1 }, {}] }), 'none'],
  ['{{ (job.a) ?? 2 }}', aJob({}), 2],
  ['{{ job.a | length ?? 0 }}', aJob({}), 0],
  ['{{ item ?? "outside" }}', aJob({}), 'outside'],
  // Literals
  ['{{ "\\u00e9\\n" }}', aJob({}), 'é\n'],
  ["{{ 'a\\n' }}", aJob({}), 'a\\n'],
  ['{{ -1.5e2 }}', aJob({}), -150],
  ['{{ true }}', aJob({}), true],
  // Conditions
  ['{{ (job.a == 1) }}', aJob({ a: 1 }), true],
  ['{{ (job.a == 1) }}', aJob({ a: '1' }), false],
  ['{{ (job.a == job.b) }}', aJob({ a: { x: [1], y: null }, b: { y: null, x: [1] } }), true],
  ['{{ (job.a != job.b) }}', aJob({ a: [1, 2], b: [2, 1] }), true],
  ['{{ (1 < 2 == true) }}', aJob({}), true],
  ['{{ (3 > 2 != false) }}', aJob({}), true],
  ['{{ ("Z" < "a" && "\\uffff" > "\\ud83d\\ude00") }}', aJob({}), true],
  ['{{ (2 <= 2 && 2 >= 2) }}', aJob({}), true],
  ['{{ (false && job.missing) }}', aJob({}), false],
  ['{{ (true || job.missing) }}', aJob({}), true],
  ['{{ (false && true || true) }}', aJob({}), true],
  ['{{ (true || true && false) }}', aJob({}), true],
  ['{{ (!job.a == true) }}', aJob({ a: false }), true],
  ['{{ (!!job.a) }}', aJob({ a: true }), true],
  ['{{ (job.a ?? 1 == 1) }}', aJob({}), true],
  ['{{ (2 in job.l) }}', aJob({ l: [1, 2] }), true],
  ['{{ ("2" in job.l) }}', aJob({ l: [1, 2] }), false],
  ['{{ ("b" in job.o) }}', aJob({ o: { b: null } }), true],
  ['{{ ("toString" in job.o) }}', aJob({ o: {} }), false],
  ['{{ ("ell" in "hello") }}', aJob({}), true],
  ['{{ ((job.a == 1) | string) }}', aJob({ a: 1 }), 'true'],
  ['{{ (job.a) | length }}', aJob({ a: [1] }), 1],
  // Filters
  ['{{ job.a | json }}', aJob({ a: 'x"' }), '"x\\""'],
  ['{{ 1.50 | string }}', aJob({}), '1.5'],
  ['{{ "-1.5e1" | number }}', aJob({}), -15],
  ['{{ "true" | bool }}', aJob({}), true],
  ['{{ job.o | length }}{{ job.s | length }}', aJob({ o: { a: 1 }, s: '😀' }), '12'],
  ['{{ job.l | first }}{{ job.l | last }}', aJob({ l: [1, 2, 3] }), '13'],
  ['{{ job.l | first ?? "none" }}', aJob({ l: [] }), 'none'],
  ['{{ job.l | join(", ") }}', aJob({ l: ['a', 1, true] }), 'a, 1, true'],
  ['{{ job.l | join("") | length }}', aJob({ l: ['a', 'bc'] }), 3],
  ['{{ steps.cut.output.path | basename }}', ran, 'cut.mp4'],
  ['{{ "a/b/" | basename }}{{ "c" | basename }}{{ "/" | basename }}', aJob({}), 'bc'],
];

const unresolved: [template: Json, scope: ExpressionScope, message: RegExp, suggestion?: RegExp][] = [
  ['{{ job.titel }}', aJob({ title: 1, a: 2 }), /job\.titel does not exist.* title, a/, /"title"/],
  ['{{ job.x }}', aJob({}), /job\.x does not exist: job is an object without keys/, /\?\?/],
  ['{{ job.a.b }}', aJob({ a: null }), /job\.a\.b does not exist: job\.a is null/],
  ['{{ job.l[2] }}', aJob({ l: [1] }), /job\.l\[2\] does not exist: job\.l is a list of 1/],
  ['{{ job.l[*].x }}', aJob({ l: [{ x: 1 }, { y: 1 }] }), /job\.l\[1\]\.x does not exist.* y/],
  ['{{ steps.later.output }}', ran, /steps\.later does not exist.*cut, a-b, failed/],
  ['{{ steps.failed.output }}', ran, /steps\.failed\.output does not exist/],
  ['{{ item }}', aJob({}), /item has no value/],
  ['{{ job.a ?? job.b }}', aJob({}), /job\.b does not exist/],
  // A segment of the wrong form is an error that ?? does not cover
  ['{{ job.o[0] ?? 1 }}', aJob({ o: { 0: 1 } }), /\[0\] does not apply to job\.o.*object/],
  ['{{ job.l["0"] ?? 1 }}', aJob({ l: [1] }), /\["0"\] does not apply to job\.l.*list/],
  ['{{ job.l.length ?? 1 }}', aJob({ l: [1] }), /\.length does not apply to job\.l/],
  ['{{ job.s.length ?? 1 }}', aJob({ s: 'x' }), /\.length does not apply to job\.s.*string/],
  ['{{ job.o[*] ?? 1 }}', aJob({ o: {} }), /\[\*\] does not apply to job\.o/],
  // Embedding
  ['a {{ job.n }}', aJob({ n: null }), /null.*\?\? "".*\| json/],
  ['a {{ job.o }}', aJob({ o: {} }), /object.*\?\? "".*\| json/],
  ['{{ job.l }}\n', aJob({ l: [] }), /list/, /line break/],
  // Operators
  ['{{ (job.a && true) }}', aJob({ a: 1 }), /&& takes booleans, not a number/],
  ['{{ (false || null) }}', aJob({}), /\|\| takes booleans, not null/],
  ['{{ (!"") }}', aJob({}), /! takes booleans/],
  ['{{ (1 < "2") }}', aJob({}), /< orders two numbers or two strings/],
  ['{{ (null >= null) }}', aJob({}), />= orders/],
  ['{{ (1 < 2 < 3) }}', aJob({}), /< orders two numbers or two strings, not a boolean and a number/],
  ['{{ (1 in 2) }}', aJob({}), /in looks for/],
  ['{{ (job.x == null) }}', aJob({}), /job\.x does not exist/],
  // Filters
  ['{{ job.a | number }}', aJob({ a: '0x10' }), /number takes/],
  ['{{ job.a | number }}', aJob({ a: '1e999' }), /number takes/],
  ['{{ job.a | number }}', aJob({ a: true }), /number takes/],
  ['{{ job.a | bool }}', aJob({ a: 'yes' }), /bool takes/],
  ['{{ job.a | string }}', aJob({ a: null }), /string takes/],
  ['{{ job.a | length }}', aJob({ a: 1 }), /length takes/],
  ['{{ job.a | first }}', aJob({ a: 'x' }), /first takes a list/],
  ['{{ job.a | last }}', aJob({ a: [] }), /empty/],
  ['{{ job.a | join(",") }}', aJob({ a: [1, null] }), /item 1 is null/],
  ['{{ job.a | basename }}', aJob({ a: 1 }), /basename takes a string/],
];

function thrownBy(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  return undefined;
}

describe('evaluateTemplate', () => {
  it.each(resolved)('resolves %j', (template, scope, expected) => {
    expect(evaluateIn(template, scope)).toStrictEqual(expected);
  });

  it.each(unresolved)('explains why %j has no value', (template, scope, message, suggestion) => {
    const error = thrownBy(() => evaluateIn({ a: [template] }, scope));
    expect(error).toBeInstanceOf(ExpressionError);
    expect(error).toMatchObject({ pointer: '/a/0', message: expect.stringMatching(message) });
    if (suggestion) expect(error).toMatchObject({ suggestion: expect.stringMatching(suggestion) });
  });

  it('never shows values in its errors', () => {
    const error = thrownBy(() => evaluateIn('{{ job.a.secret }}', aJob({ a: { token: 'hunter2' } })));
    expect(JSON.stringify([String(error), error])).not.toContain('hunter2');
  });

  it('keeps every JSON value with its type', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(evaluateIn({ x: ['{{ job.v }}'] }, aJob({ v: value as Json }))).toStrictEqual({ x: [value] });
      }),
    );
  });

  it('writes what JSON.stringify writes', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
        expect(evaluateIn('{{ job.v | json }}', aJob({ v: value as Json }))).toBe(JSON.stringify(value));
      }),
    );
  });

  it('passes any JSON through $literal untouched', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: fc.constantFrom('{', '}', 'a', '$') }), (value) => {
        expect(evaluateIn({ $literal: value as Json }, aScope())).toStrictEqual(value);
      }),
    );
  });

  it('never reads what an object inherits', () => {
    const inherited = Object.getOwnPropertyNames(Object.prototype).filter((name) => !isForbiddenName(name));
    for (const name of inherited) {
      for (const path of [
        `job.${name}`,
        `job.deep["${name}"]`,
        `job.list[*].${name}`,
        `steps.${name}.output`,
      ]) {
        const scope = aJob({ deep: {}, list: [{}] });
        expect(evaluateIn(`{{ ${path} ?? "none" }}`, scope)).toBe('none');
      }
    }
    expect(inherited).toContain('toString');
  });

  it('never reads a property of a list, string or other scalar', () => {
    const name = fc.constantFrom('length', 'at', 'map', 'toString', 'valueOf', '0', 'name', 'size');
    const holder = fc.constantFrom<Json>([], [1], 'text', 1, true);
    fc.assert(
      fc.property(name, holder, (key, value) => {
        expect(() => evaluateIn(`{{ job.value["${key}"] ?? 1 }}`, aJob({ value }))).toThrow(ExpressionError);
      }),
    );
  });

  it('reads nothing from instances of classes', () => {
    class Holder {
      readonly secret = 1;
    }
    const scope = aJob({ holder: new Holder() as unknown as Json, date: new Date(0) as unknown as Json });
    expect(() => evaluateIn('{{ job.holder.secret ?? 1 }}', scope)).toThrow(ExpressionError);
    expect(() => evaluateIn('{{ job.date }}', scope)).toThrow(/JSON cannot hold/);
  });

  it('stops templates that build far more than they hold', () => {
    const scope = aJob({ big: 'x'.repeat(1_000_000) });
    expect(() => evaluateIn('{{ job.big }}'.repeat(40), scope)).toThrow(/units of work/);
    expect(() => evaluateIn(Array(40).fill('{{ job.big | json }}'), scope)).toThrow(/units of work/);
  });
});
