import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { countProcessorMs } from '../../../../test/support/processor-time.ts';
import { runs } from '../../../../test/support/runs.ts';
import { readDefinition } from '../../src/definitions/read-definition.ts';

const options = { knownCapabilities: null, strict: false };
function read(text: string, contentType: string | null = null) {
  return readDefinition({ text, contentType }, options);
}

/** `line:column code pointer` of every finding. */
function placesOf(text: string, contentType: string | null = null): string[] {
  return read(text, contentType).findings.map(({ line, column, code, pointer }) =>
    `${line}:${column} ${code} ${pointer}`.trimEnd(),
  );
}

function yaml(...lines: string[]): string {
  return [
    'pipeline: trailer',
    'version: "1"',
    'steps:',
    '  - id: cut',
    '    capability: concat',
    ...lines,
  ].join('\n');
}

const sound = {
  pipeline: 'trailer',
  version: '1',
  steps: [
    { id: 'cut', capability: 'concat', input: { n: 1.5, list: [true, null, '{{ job.x }}'] } },
    { id: 'mix', capability: 'audio-mix', depends_on: ['cut'] },
  ],
};

const yamlTraps: [rule: string, text: string, places: string[]][] = [
  [
    'every unquoted expression, and what is wrong inside it',
    yaml('    input:', '      x: {{ job.name }}', '      y: [{{ jbo.b }}]'),
    [
      '7:10 yaml_unquoted_expression /steps/0/input/x',
      '8:11 yaml_unquoted_expression /steps/0/input/y/0',
      '8:14 root_unknown /steps/0/input/y/0',
    ],
  ],
  [
    'an unquoted expression that YAML cannot read at all',
    yaml('    input:', '      x: {{ steps.a.output["x"] }}', '      y: {{ job.a }}/b'),
    ['7:10 yaml_unquoted_expression', '8:10 yaml_unquoted_expression'],
  ],
  ['tabs', yaml('    input:', '\t  x: 1'), ['7:1 yaml_tab']],
  ['a second document', `${yaml()}\n---\na: 1\n`, ['6:1 yaml_several_documents']],
  [
    'keys written twice',
    yaml('    input: {a: 1, a: 2}', '    id: b'),
    ['6:19 key_duplicate /steps/0/input/a', '7:5 key_duplicate /steps/0/id'],
  ],
  [
    'what JSON cannot hold',
    yaml('    input: [.nan, -.inf]'),
    [
      '6:12 type_invalid /steps/0/input',
      '6:13 value_not_json /steps/0/input/0',
      '6:19 value_not_json /steps/0/input/1',
    ],
  ],
  [
    'numbers that would change',
    yaml(
      '    input: {id: 7615917337495251231, hex: 0xFFFFFFFFFFFFFFFF, far: 1e999}',
      '    when: job.id == 9007199254740993',
    ),
    [
      '6:17 number_inexact /steps/0/input/id',
      '6:43 number_inexact /steps/0/input/hex',
      '6:68 number_inexact /steps/0/input/far',
      '7:21 expression_syntax /steps/0/when',
    ],
  ],
  [
    'tags',
    yaml('    input: {at: !!timestamp 2001-01-01, b: !own x}'),
    ['6:17 yaml_tag /steps/0/input/at', '6:44 yaml_tag /steps/0/input/b'],
  ],
  [
    'keys that are no text',
    yaml('    input: {[a]: 1, ? : 2}'),
    ['6:13 yaml_key /steps/0/input', '6:23 yaml_key /steps/0/input'],
  ],
  ['an alias without its anchor', yaml('    input: {a: *nope}'), ['6:16 yaml_alias /steps/0/input/a']],
  ['an anchor that holds itself', yaml('    input: &in {a: *in}'), ['6:20 yaml_alias /steps/0/input/a']],
  [
    'merge keys in an input',
    yaml('    input: &base {a: 1}', '  - id: b', '    capability: open', '    input:', '      <<: *base'),
    ['10:7 yaml_merge /steps/1/input'],
  ],
  [
    'merge keys of a step, and nothing that follows from them',
    yaml('  - <<: *cut', '    id: b', '    capabilty: x'),
    ['6:5 yaml_merge /steps/1'],
  ],
  [
    'a merge of several maps, deep in braces',
    yaml('    input: {a: [{b: {<<: [{x: 1}, {y: 2}], z: 3}}]}'),
    ['6:22 yaml_merge /steps/0/input/a/0/b'],
  ],
  [
    'numbers that lose what is written',
    yaml('    input: {a: 01234, b: [0755, 0o755, -07], c: 0x1F, d: +1, e: 1_000, f: 00.5}'),
    [
      '6:16 yaml_number /steps/0/input/a',
      '6:27 yaml_number /steps/0/input/b/0',
      '6:33 yaml_number /steps/0/input/b/1',
      '6:40 yaml_number /steps/0/input/b/2',
      '6:49 yaml_number /steps/0/input/c',
      '6:58 yaml_number /steps/0/input/d',
      '6:65 yaml_number /steps/0/input/e',
      '6:75 yaml_number /steps/0/input/f',
    ],
  ],
  [
    'no number that is what is written, and no text',
    yaml(
      '    input: {a: [0, -1, 0.5, 1.50, 1e3, .5, "01", \'0x1\', 1_0, a_1, +a, 2026-01-02], "<<": 1, 01: x, b: !!str 07}',
    ),
    [],
  ],
  ['a missing quote', yaml('    input: {a: "b}'), ['6:19 yaml_syntax']],
];

const jsonTraps: [rule: string, text: string, places: string[]][] = [
  ['a trailing comma', '{"pipeline":"p",}', ['1:17 json_syntax']],
  ['text after the end', '{} {}', ['1:4 json_syntax']],
  ['an open end', '{\n  "a": [1, 2', ['2:13 json_syntax /a']],
  ['a line break in a string', '{"a": "b\nc"}', ['1:7 json_syntax /a']],
  ['numbers that are no JSON', '{"a": 01}', ['1:7 json_syntax /a']],
  [
    'numbers that would change',
    '{"pipeline":"p","version":"1","steps":[{"id":"a","capability":"c","input":{"n":-1e999,"id":9007199254740993}}]}',
    ['1:80 number_inexact /steps/0/input/n', '1:92 number_inexact /steps/0/input/id'],
  ],
  ['an empty text', '', ['1:1 json_syntax']],
  [
    'keys written twice',
    '{"pipeline":"p","version":"1","version":"2","steps":[{"id":"a","capability":"c"}]}',
    ['1:31 key_duplicate /version'],
  ],
  [
    'names that reach a prototype',
    '{"pipeline":"p","version":"1","steps":[{"id":"a","capability":"c","input":{"__proto__":{"x":1},"y":{"constructor":"{{ jb }}"}}}]}',
    ['1:76 name_forbidden /steps/0/input/__proto__', '1:101 name_forbidden /steps/0/input/y/constructor'],
  ],
];

describe('readDefinition', () => {
  it('reads the same definition from JSON and YAML', () => {
    for (const reading of [
      read(JSON.stringify(sound), 'application/json; charset=utf-8'),
      read(stringify(sound), 'application/yaml'),
      read(`\uFEFF${JSON.stringify(sound, null, 2)}`),
      read(stringify(sound).replaceAll('\n', '\r\n')),
    ]) {
      expect(reading).toMatchObject({ definition: sound, findings: [] });
    }
  });

  it.each(yamlTraps)('points out in YAML: %s', (_, text, places) => {
    expect(placesOf(text, 'application/yaml')).toEqual(places);
  });

  it.each(jsonTraps)('points out in JSON: %s', (_, text, places) => {
    expect(placesOf(text, 'application/json')).toEqual(places);
  });

  it('reports the value that a number gets, and how to keep its text', () => {
    const { definition, findings } = read(
      yaml('    input: {a: 01234, b: 0o755, c: 1_000}'),
      'application/yaml',
    );
    expect(definition?.steps[0]?.input).toEqual({ a: 1234, b: 493, c: '1_000' });
    expect(findings.map(({ severity, message, suggestion }) => [severity, message, suggestion])).toEqual([
      ['warning', 'YAML reads 01234 as the number 1234', 'for a text, quote it: "01234"'],
      ['warning', 'YAML reads 0o755 as the number 493', 'for a text, quote it: "0o755"'],
      ['warning', 'YAML reads 1_000 as a text', 'for a number, write 1000'],
    ]);
  });

  it('explains how to quote an expression', () => {
    const [first, second] = read(
      yaml('    input:', '      x: {{ job.a }}', '      y: {{ job.b ?? "c" }}'),
    ).findings;
    expect(first).toMatchObject({ severity: 'error', message: expect.stringContaining('quote it') });
    expect(first?.suggestion).toBe('write "{{ job.a }}"');
    expect(second?.suggestion).toBe(`write '{{ job.b ?? "c" }}'`);
  });

  it('reports shape, names and expressions together, in the order of the text', () => {
    const text = `
version: 1.0
stepz: []
pipeline: p q
steps:
  - id: cut
    capabilty: concat
    timeout: 25h
    input:
      text: |
        Hello {{ job.name }},
        see {{ steps.cutt.output | jsn }}
      folded: "a\\n\\u00e9 {{ steps.cutt.output }}"
  - id: mix
    capability: audio-mix
    priority: standart
    retry: {mx: 1, max: 1.5}
    depends_on: [mix, cut]
    input: [1]
    escalate: {repairs: apply, repair: aply}
  - only text
`;
    expect(placesOf(text)).toEqual([
      '2:10 type_invalid /version',
      '3:1 key_unknown /stepz',
      '4:11 value_invalid /pipeline',
      '6:5 kind_missing /steps/0',
      '7:5 key_unknown /steps/0/capabilty',
      '8:14 duration_out_of_range /steps/0/timeout',
      '12:36 filter_unknown /steps/0/input/text',
      '16:15 value_invalid /steps/1/priority',
      '17:13 key_unknown /steps/1/retry/mx',
      '17:25 type_invalid /steps/1/retry/max',
      '18:18 step_self_dependency /steps/1/depends_on/0',
      '19:12 type_invalid /steps/1/input',
      '20:16 key_unknown /steps/1/escalate/repairs',
      '20:40 value_invalid /steps/1/escalate/repair',
      '21:5 type_invalid /steps/2',
    ]);
    const suggestions = read(text)
      .findings.map(({ suggestion }) => suggestion)
      .filter(Boolean);
    expect(suggestions).toEqual([
      'quote it: "1.0"',
      'did you mean "steps"?',
      'did you mean "capability"?',
      'did you mean "json"?',
      'did you mean "standard"?',
      'did you mean "max"?',
      'did you mean "repair"?',
      'did you mean "apply"?',
    ]);
  });

  it('names a step that is depended on twice', () => {
    const text = yaml('  - id: mix', '    capability: audio-mix', '    depends_on: [cut, cut]');
    expect(placesOf(text)).toContainEqual(expect.stringMatching(/value_invalid \/steps\/\d\/depends_on$/));
  });

  it('checks names although another part is broken, as long as every id can be read', () => {
    const text = yaml('    depends_on: [mux]', '    priority: 7', '  - id: mix', '    capability: audio-mix');
    expect(placesOf(text)).toEqual([
      '6:18 step_unknown /steps/0/depends_on/0',
      '7:15 value_invalid /steps/0/priority',
    ]);
    expect(placesOf(text.replace('id: mix', 'di: mix'))).not.toContain(
      '6:18 step_unknown /steps/0/depends_on/0',
    );
  });

  it('places findings inside strings that are written with escapes', () => {
    const text =
      '{"pipeline":"p","version":"1","steps":[\n{"id":"a","capability":"c","input":{"x":"\\u00e9\\"{{ jb.x }}"}}]}';
    const column = (text.split('\n')[1]?.indexOf('jb.x') ?? 0) + 1;
    expect(placesOf(text)).toEqual([`2:${column} root_unknown /steps/0/input/x`]);
  });

  it('shares what an anchor names, and stops aliases that repeat too much', () => {
    const { definition } = read(
      yaml('    input: &in {x: "{{ job.a }}"}', '  - {id: mix, capability: c, input: *in}'),
    );
    expect(definition?.steps[1]?.input).toEqual({ x: '{{ job.a }}' });
    const row = (name: string, item: string) =>
      `      ${name}: &${name} [${Array(10).fill(item).join(', ')}]`;
    const bomb = yaml(
      '    input:',
      row('a', 'x'),
      ...['b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'].map((name, at) => row(name, `*${'abcdefgh'[at]}`)),
    );
    expect(read(bomb).findings).toMatchObject([
      { code: 'yaml_alias', message: expect.stringContaining('100000') },
    ]);
  });

  it('is bounded for texts that are deep, or hold very many parts', () => {
    const spentMs = countProcessorMs();
    for (const [text, code] of [
      ['['.repeat(50_000), 'too_deep'],
      ['{"a":'.repeat(50_000), 'too_deep'],
      ['- '.repeat(50_000), 'too_deep'],
      [`[${'1,'.repeat(1_000_000)}1]`, 'yaml_too_large'],
      [`{"a":[${'1,'.repeat(1_000_000)}1]}`, 'too_many_values'],
    ] as const) {
      expect(read(text)).toMatchObject({ definition: null, findings: [{ code }] });
    }
    expect(spentMs()).toBeLessThan(10_000);
  });

  it('keeps the first 1,000 errors and counts the rest', () => {
    const steps = Array.from({ length: 1_200 }, (_, n) => ({
      id: `s${n}`,
      capability: 'c',
      depends_on: ['none'],
    }));
    const { findings } = read(JSON.stringify({ ...sound, steps }));
    expect(findings).toHaveLength(1_001);
    expect(findings.at(-1)).toMatchObject({ severity: 'note', message: '200 more findings are not shown' });
  });

  it('keeps a definition that has warnings only', () => {
    const { definition, findings } = readDefinition(
      { text: JSON.stringify(sound), contentType: null },
      { knownCapabilities: new Set(['concat']), strict: false },
    );
    expect(definition).toEqual(sound);
    expect(findings).toMatchObject([
      { severity: 'warning', code: 'capability_unknown', pointer: '/steps/1/capability', line: 1 },
    ]);
  });

  it('reads every JSON value as JSON.parse does', () => {
    fc.assert(
      fc.property(fc.json({ stringUnit: 'binary' }), fc.constantFrom(0, 1, '\t'), (json, indent) => {
        const value: unknown = JSON.parse(json);
        const text = JSON.stringify({ ...sound, output: value }, null, indent);
        const { definition, findings } = read(text, 'application/json');
        const complaints = findings.filter(({ code }) => code === 'json_syntax' || code === 'type_invalid');
        expect(complaints).toEqual([]);
        if (definition) expect(definition.output).toEqual(JSON.parse(text).output);
      }),
    );
  });

  it('answers any text with findings or a definition, in either language', () => {
    const part = fc.constantFrom(
      ...[
        'pipeline: ',
        'steps:',
        '\n',
        '  ',
        '- ',
        'id: a',
        '{{ job.a }}',
        '"',
        "'",
        '{',
        '}',
        '[',
        ']',
        ',',
        ': ',
      ],
      ...[
        '&a ',
        '*a',
        '!!str ',
        '|',
        '>',
        '\t',
        '#',
        '?',
        '---\n',
        '%YAML 1.1\n',
        '<<: ',
        '1',
        'null',
        '\\',
        '\u0000',
      ],
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 30 }), fc.constantFrom('json', 'yaml'), (parts, language) => {
        const { definition, findings } = read(parts.join(''), `application/${language}`);
        expect(definition === null).toBe(findings.some(({ severity }) => severity === 'error'));
        for (const { line = 0, column = 0 } of findings) expect(Math.min(line, column)).toBeGreaterThan(0);
      }),
      { numRuns: runs(200) },
    );
  });
});

it.each([
  [
    'pipeline: p\nversion: "1"\nsteps: - id: a\n    capability: x',
    'the list of steps begins on the line after its key',
  ],
  ['pipeline: p\nversion: "1"\nsteps: - id: a', 'the list of steps begins on the line after its key'],
  [
    'steps:\n  - id: a\n    depends_on: - b\n    wait: 1s',
    'the list of depends_on begins on the line after its key',
  ],
])('a list behind its key is named in %j', (text, words) => {
  const { findings } = read(text);
  expect(findings[0]).toMatchObject({ code: 'yaml_syntax', message: expect.stringContaining(words) });
});
