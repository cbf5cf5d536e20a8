import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyText } from '../../../../test/support/any-text.ts';
import { runs } from '../../../../test/support/runs.ts';
import type { Json } from '../../src/contracts/primitives.ts';
import { ExpressionSyntaxError } from '../../src/expression/language.ts';
import { compileTemplate, readTemplate, referencedSteps, references } from '../../src/expression/template.ts';

function nested(depth: number): Json {
  return depth === 0 ? '{{ job.a }}' : [nested(depth - 1)];
}
function parenthesised(depth: number) {
  return `{{ ${'('.repeat(depth)}1${')'.repeat(depth)} }}`;
}

const refused: (readonly [
  template: Json,
  offset: number,
  message: RegExp,
  suggestion?: RegExp,
  code?: string,
])[] = [
  ['{{ }}', 3, /expected a path, a value or \(, found "}}"/],
  ['x {{ job.a', 10, /never closed/, /}}/],
  ['{{ job.a }', 9, /found "}"/],
  ['{{ jobs.a }}', 3, /"jobs" is no root/, /"job"/, 'root_unknown'],
  ['{{ name }}', 3, /"name" is no root/, /job\.<field>/, 'root_unknown'],
  ['{{ job.a | jsno }}', 11, /"jsno" is no filter/, /"json"/, 'filter_unknown'],
  ['{{ job.a | toString }}', 11, /is no filter/, undefined, 'filter_unknown'],
  ['{{ job.a | join }}', 16, /string argument/],
  ['{{ job.a | join(1) }}', 16, /string argument/],
  ['{{ job.a | first(1) }}', 16, /expected }}/],
  ['{{ job.a || job.b }}', 9, /\|\| needs parentheses/, /\( a \|\| b \)/],
  ['{{ job.a == 1 }}', 9, /== needs parentheses/],
  ['{{ job.a in job.b }}', 9, /in needs parentheses/],
  ['{{ (job.a = 1) }}', 10, /write == to compare/],
  ['{{ (job.a).b }}', 10, /closing parenthesis/],
  ['{{ (job.a)[0] }}', 10, /closing parenthesis/],
  ['{{ (job.a) job.b }}', 11, /expected }}/],
  ['{{ (job.a }}', 10, /expected an operator or \)/],
  ['{{ job.l[-1] }}', 9, /-1 is no index/, /\| last/],
  ['{{ job.l[1.5] }}', 9, /no index/],
  ['{{ job.l[] }}', 9, /expected an index/],
  ['{{ job.l[0 }}', 11, /expected \]/],
  ['{{ job.0 }}', 7, /name after the dot/, /\["key"\]/],
  ['{{ job. }}', 8, /name after the dot/],
  ['{{ job.a job.b }}', 9, /expected }}/],
  ['{{ "a }}', 3, /never closed with "/],
  ["{{ 'a }}", 3, /never closed with '/],
  ['{{ "\\x41" }}', 3, /escape/],
  ['{{ 01 }}', 4, /expected }}/],
  ['{{ 1e999 }}', 3, /too large/],
  ['{{ $x }}', 3, /unexpected "\$"/],
  ['{{ 😀 }}', 3, /unexpected "😀"/],
  ['{{{ job.a }}}', 4, /expected a key in quotes/],
  ['{{ job.__proto__ }}', 7, /__proto__ is not allowed/, undefined, 'name_forbidden'],
  ['{{ job["constructor"] }}', 7, /constructor is not allowed/, undefined, 'name_forbidden'],
  ["{{ steps['prototype'].output }}", 9, /prototype is not allowed/, undefined, 'name_forbidden'],
  ['{{ job["\\u005f_proto__"] }}', 7, /__proto__ is not allowed/, undefined, 'name_forbidden'],
  [{ $literal: 1, b: 2 }, 0, /stands alone/],
  [
    JSON.parse('{"constructor": "{{ job.a }}"}'),
    0,
    /constructor is not allowed/,
    undefined,
    'name_forbidden',
  ],
  [`{{ job${'.a'.repeat(33)} }}`, 70, /more than 32 segments/, undefined, 'expression_limit'],
  [parenthesised(65), 67, /nests deeper than 64/, undefined, 'expression_limit'],
  [`{{ (${'!'.repeat(64)}true) }}`, 68, /nests deeper than 64/, undefined, 'expression_limit'],
  [nested(65), 0, /nests deeper than 64/, undefined, 'expression_limit'],
  [`{{ job.a }}${'x'.repeat(65_526)}`, 0, /at most 65536 bytes/, undefined, 'expression_limit'],
  [`{{ job.a }}${'é'.repeat(32_763)}`, 0, /at most 65536 bytes/, undefined, 'expression_limit'],
];

const accepted: Json[] = [
  `{{ job${'.a'.repeat(32)} }}`,
  parenthesised(64),
  nested(64),
  `{{ job.a }}${'x'.repeat(65_525)}`,
  `{{ job.a }}${'é'.repeat(32_762)}`,
  'x'.repeat(100_000),
  `{{ job.a${' ?? 1'.repeat(10_000)} }}`,
  `{{ (true${' && true'.repeat(7_000)}) }}`,
  `{{ (1${' == 1'.repeat(10_000)}) }}`,
  `{{ job.a${' | json'.repeat(9_000)} }}`,
];

function titleOf(template: Json): string {
  return JSON.stringify(template).slice(0, 60);
}

describe('compileTemplate', () => {
  it.each(refused.map((row) => [titleOf(row[0]), ...row] as const))('refuses %s', (...row) => {
    const [, template, offset, message, suggestion, code = 'expression_syntax'] = row;
    const { errors } = readTemplate(template);
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatchObject({ code, offset, message: expect.stringMatching(message) });
    if (suggestion) expect(errors[0]?.suggestion).toMatch(suggestion);
    expect(() => compileTemplate(template)).toThrow(ExpressionSyntaxError);
  });

  it.each(accepted.map((template) => [titleOf(template), template] as const))('accepts %s', (_, template) => {
    expect(readTemplate(template).errors).toEqual([]);
  });

  it('reports one error for each broken string, with its pointer', () => {
    const { errors, template } = readTemplate({ 'a/b': ['{{', { c: '{{ x }}' }], d: '{{ job.d }}' }, '/in');
    expect(errors.map(({ pointer, code }) => [pointer, code])).toEqual([
      ['/in/a~1b/0', 'expression_syntax'],
      ['/in/a~1b/1/c', 'root_unknown'],
    ]);
    expect(template.expressions).toBe(1);
  });

  it('ends on any text, and throws nothing but its own error', () => {
    const token = fc.constantFrom(
      ...[
        '{{',
        '}}',
        '(',
        ')',
        '[',
        ']',
        '*',
        '.',
        '|',
        '||',
        '&&',
        '!',
        '??',
        '==',
        '<',
        'in',
        '"',
        "'",
        '\\',
      ],
      ...['job', 'steps', 'a', '0', '-1', '1e9', ' ', '\n', 'json', 'join', '$', '😀', 'null', '{', '}'],
    );
    const text = fc.oneof(
      anyText(),
      fc.array(token, { maxLength: 40 }).map((all) => all.join('')),
    );
    fc.assert(
      fc.property(text, (body) => {
        for (const template of [body, `{{${body}`, `{{ ${body} }}`]) {
          for (const error of readTemplate(template).errors) {
            expect(error).toBeInstanceOf(ExpressionSyntaxError);
            expect(error.offset).toBeGreaterThanOrEqual(0);
            expect(error.offset).toBeLessThanOrEqual(template.length);
          }
        }
      }),
      { numRuns: runs(400) },
    );
  });
});

describe('references', () => {
  it('lists every path with whether ?? guards it', () => {
    const template = compileTemplate([
      'x {{ job.a ?? steps.b.output[0] }} {{ (steps["c"].status == "x" && !job.d) ?? run.id }}',
      { k: '{{ (job.e) | json ?? (job.f ?? job.g) ?? job.h }}', l: { $literal: '{{ job.no }}' } },
    ]);
    expect(references(template).map(({ root, segments, optional }) => [root, ...segments, optional])).toEqual(
      [
        ['job', 'a', true],
        ['steps', 'b', 'output', 0, false],
        ['steps', 'c', 'status', false],
        ['job', 'd', false],
        ['run', 'id', false],
        ['job', 'e', true],
        ['job', 'f', true],
        ['job', 'g', true],
        ['job', 'h', false],
      ],
    );
  });

  it('reports the position of each path', () => {
    const [first, second] = references(compileTemplate({ a: 'é {{ job.x ?? job.y }}' }, '/p'));
    expect(first).toMatchObject({ pointer: '/p/a', offset: 5 });
    expect(second).toMatchObject({ pointer: '/p/a', offset: 14 });
  });

  it('names each mentioned step once', () => {
    const template = compileTemplate(['{{ steps.b.output }}', 'x{{ steps.a.output ?? steps["b"].status }}']);
    expect(referencedSteps(template)).toEqual(['b', 'a']);
  });
});
