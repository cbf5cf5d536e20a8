import { describe, expect, it, test } from 'vitest';
import type { PipelineDefinition, StepDefinition } from '../../../src/contracts/pipeline.ts';
import type { Json, JsonObject } from '../../../src/contracts/primitives.ts';
import { checkDefinition } from '../../../src/definition/checks/check-definition.ts';
import { aDefinition, aStep } from './a-definition.ts';
import { capabilities, count, object, type Schemas, show, someFacts, type Told, text } from './some-facts.ts';

function findingsOf(definition: PipelineDefinition, known: Record<string, Schemas> = capabilities) {
  return checkDefinition(definition, someFacts(known));
}

/** A step `a` of the capability, and one that takes anything with the expression in its input. */
function reading(expression: string, capability = 'join', over: Partial<PipelineDefinition> = {}) {
  return aDefinition({
    steps: [aStep({ id: 'a', capability }), aStep({ id: 'b', capability: 'sink', input: { x: expression } })],
    ...over,
  });
}

const paths: [expression: string, told: Told[]][] = [
  ['{{ steps.a.output.path }}', []],
  [
    '{{ steps.a.output.pth }}',
    [['error', 'path_unknown', /pth never exists; .* has path, frames/, /"path"/]],
  ],
  ['{{ steps.a.output.pth ?? 1 }}', [['warning', 'path_unknown', /never exists/]]],
  ['{{ 1 ?? steps.a.output.pth }}', []],
  ['{{ job.x ?? steps.a.output.pth }}', [['error', 'path_unknown', /never exists/]]],
  ['{{ steps.a.output.preview.at }}', [['warning', 'path_optional', /preview may be missing/, /\?\?/]]],
  ['{{ steps.a.output.preview.at ?? 0 }}', []],
  ['{{ (steps.a.output.preview.at == 1) ?? true }}', [['warning', 'path_optional', /preview/]]],
  ['{{ steps.a.output.byName.x }}', [['warning', 'path_optional', /byName\.x/]]],
  [
    '{{ steps.a.output.label.x }}',
    [['error', 'path_invalid', /\.x does not apply to .*label, which is a string or null/]],
  ],
  [
    '{{ steps.a.output.path[0] }}',
    [['error', 'path_invalid', /\[0\] does not apply to .*path, which is a string/]],
  ],
  ['{{ steps.a.output.path[0] ?? 1 }}', [['error', 'path_invalid', /./]]],
  ['{{ steps.a.output.parts.name }}', [['error', 'path_invalid', /a list of objects/]]],
  ['{{ steps.a.output.parts[0].name }}', [['warning', 'path_optional', /parts\[0\] may be missing/]]],
  ['{{ steps.a.output.parts[*].name }}', []],
  ['{{ steps.a.output.parts[*].nam }}', [['error', 'path_unknown', /parts\[\*\]\.nam/, /"name"/]]],
  ['{{ steps.a.output.parts[*].tags[*] }}', []],
  ['{{ steps.a.output.pair[1] }}', []],
  ['{{ steps.a.output.pair[2] }}', [['error', 'path_unknown', /at most 2 items/]]],
  ['{{ steps.a.error.code }}', [['warning', 'path_optional', /only a step that failed/]]],
  ['{{ run.scheduled_at }}', [['warning', 'path_optional', /only a run that a schedule starts/]]],
  ['{{ run.scheduled_at ?? "by hand" }}', []],
  ['{{ run.scheduled_date }}', [['warning', 'path_optional', /only a run that a schedule starts/]]],
  ['{{ run.scheduled_date ?? "by hand" }}', []],
  ['{{ run.period_start }}', [['warning', 'path_optional', /only a run that a schedule starts/]]],
  ['{{ run.period_end ?? "by hand" }}', []],
  ['{{ steps.a.error.cod ?? 1 }}', [['warning', 'path_unknown', /cod/, /"code"/]]],
  ['{{ run.id }} {{ run.attempt }} {{ steps.a.status }} {{ steps.a.cost_usd }}', []],
  ['{{ run.id.x }}', [['error', 'path_invalid', /a string/]]],
];

const operands: [expression: string, told: Told[]][] = [
  [
    '{{ steps.a.output.frames | length }}',
    [['error', 'operand_invalid', /length takes .*, not a whole number/]],
  ],
  ['{{ steps.a.output.parts | join(", ") }}', [['error', 'operand_invalid', /join takes/]]],
  ['{{ steps.a.output.parts[*].name | join(", ") | length }}', []],
  ['{{ steps.a.output.parts | first }}', [['warning', 'path_optional', /may be empty/]]],
  ['{{ (steps.a.output.parts | first) ?? null }}', []],
  ['{{ steps.a.output.pair | last | string }}', []],
  ['{{ steps.a.output.byName | string }}', [['error', 'operand_invalid', /an object/]]],
  ['{{ steps.a.output.label | basename }}', []],
  ['{{ ( !steps.a.output.path ) }}', [['error', 'operand_invalid', /! takes booleans, not a string/]]],
  ['{{ ( job.x && steps.a.output.frames ) }}', [['error', 'operand_invalid', /&& takes booleans/]]],
  ['{{ ( steps.a.output.frames < steps.a.output.path ) }}', [['error', 'operand_invalid', /< orders/]]],
  ['{{ ( steps.a.output.frames in steps.a.output.path ) }}', [['error', 'operand_invalid', /in looks for/]]],
  ['{{ ( "x" in steps.a.output.byName ) }}', []],
  ['{{ ( steps.a.output.frames == "1" ) }}', [['warning', 'comparison_constant', /always false/]]],
  ['{{ ( steps.a.output.mode != "fsat" ) }}', [['warning', 'comparison_constant', /always true/, /"fast"/]]],
  ['{{ ( steps.a.status == "skipped" ) }}', []],
  ['frames: {{ steps.a.output.frames }}', []],
  ['{{ steps.a.output.parts | map("name") | join(", ") }}', []],
  ['{{ steps.a.output.parts | map("nam") }}', [['error', 'path_unknown', /"nam" is in no item/, /\?\?/]]],
  [
    '{{ steps.a.output.frames | map("name") }}',
    [['error', 'operand_invalid', /map takes a list of objects/]],
  ],
  ['{{ steps.a.output.pair | map("name") }}', [['error', 'operand_invalid', /map takes a list of objects/]]],
  ['{{ steps.a.output.parts | where("name" == "x") | map("name") | sort | first ?? "" }}', []],
  [
    '{{ steps.a.output.parts | sort }}',
    [['error', 'operand_invalid', /sort takes a list of numbers or of strings/]],
  ],
  ['{{ steps.a.output.parts | sum }}', [['error', 'operand_invalid', /sum takes a list of numbers/]]],
  ['{{ steps.a.output.parts | map("name") | max }}', [['warning', 'path_optional', /may be empty/]]],
  [
    '{{ steps.a.output.parts | concat(steps.a.output.path) }}',
    [['error', 'operand_invalid', /the argument of concat is a list, not a string/]],
  ],
  ['{{ steps.a.output.path | split("/") | last | replace(".mp4", "") }}', []],
  ['{{ steps.a.output.frames | upper }}', [['error', 'operand_invalid', /upper takes a string/]]],
  ['{{ job.clips | where("a" == 1) | map("b") | first ?? 1 }}', []],
  ['{{ steps.a.output.path | round }}', [['error', 'operand_invalid', /round takes a number/]]],
  ['{{ steps.a.output.preview.at | default(0) }}', []],
  ['{{ steps.a.output.label | default("none") | upper }}', []],
  ['{{ steps.a.output.parts | first | default(null) }}', []],
  ['{{ steps.a.output.frames | format_date("YYYY") | upper }}', []],
  [
    '{{ steps.a.output.path | add_duration(steps.a.output.frames) }}',
    [['error', 'operand_invalid', /add_duration/]],
  ],
  [
    'parts: {{ steps.a.output.parts }}',
    [['error', 'operand_invalid', /text takes .*, not a list of objects/, /json/]],
  ],
];

describe('paths and operands', () => {
  it.each([...paths, ...operands])('%s', (expression, told) => {
    expect(findingsOf(reading(expression))).toEqual(show(told));
  });

  it('finds nothing in paths that no schema describes', () => {
    for (const path of ['job.a[0].b', 'steps.a.output.x[*].y', 'steps.a.output[3]']) {
      expect(findingsOf(reading(`{{ ${path} }}`, 'unheard-of'))).toEqual([]);
    }
  });

  it('notes what an open schema does not describe', () => {
    expect(findingsOf(reading('{{ steps.a.output.pth.x }}', 'open'))).toEqual(
      show([['note', 'path_undescribed', /pth is not in the schema/]]),
    );
  });

  it('walks the job through job_schema', () => {
    const job_schema = object({ name: text });
    expect(findingsOf(reading('{{ job.nam }}', 'join', { job_schema }))).toEqual(
      show([['error', 'path_unknown', /job\.nam never exists/, /"name"/]]),
    );
  });

  it('places a finding at the position of its path', () => {
    const [finding] = findingsOf(reading('é {{ job.x ?? steps.a.output.pth }}'));
    expect(finding).toMatchObject({ pointer: '/steps/1/input/x', offset: 14 });
  });
});

describe('unions', () => {
  const known = (output: JsonObject) => ({ join: { output } });
  const a = object({ kind: { const: 'a' }, x: text });
  const b = object({ kind: { const: 'b' }, y: text });

  test.each<[string, JsonObject]>([
    ['anyOf', { anyOf: [a, b] }],
    ['oneOf', { oneOf: [a, b] }],
    ['$ref', { anyOf: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/b' }], $defs: { a, b } }],
    ['two specs', {}],
  ])('%s: a path of any branch may be there, one of none is not, one of all is', (_, output) => {
    const facts =
      Object.keys(output).length > 0
        ? someFacts(known(output))
        : someFacts({ join: [{ output: a }, { output: b }] });
    const told = (path: string) =>
      checkDefinition(reading(`{{ steps.a.output.${path} }}`), facts).map(({ code }) => code);
    expect([told('kind'), told('x'), told('z')]).toEqual([[], ['path_optional'], ['path_unknown']]);
  });

  it('joins the rules of allOf and unevaluatedProperties', () => {
    const output = {
      allOf: [{ $ref: '#/$defs/base' }],
      properties: { y: count },
      required: ['x'],
      unevaluatedProperties: false,
      $defs: { base: { type: 'object', properties: { x: text } } },
    };
    const told = (path: string) =>
      findingsOf(reading(`{{ steps.a.output.${path} }}`), known(output)).map(({ code }) => code);
    expect([told('x'), told('x.z'), told('y'), told('z')]).toEqual([
      [],
      ['path_invalid'],
      ['path_optional'],
      ['path_unknown'],
    ]);
  });

  it('reads schemas that lead back to themselves', () => {
    const output = { $ref: '#/$defs/tree', $defs: { tree: object({ left: { $ref: '#/$defs/tree' } }) } };
    const path = `steps.a.output${'.left'.repeat(29)}`;
    expect(findingsOf(reading(`{{ ${path} }}`), known(output))).toEqual([]);
    expect(findingsOf(reading(`{{ ${path}.right }}`), known(output))).toMatchObject([
      { code: 'path_unknown' },
    ]);
  });
});

describe('steps that may not have an output', () => {
  const chain = (first: Partial<StepDefinition>, second: Partial<StepDefinition> = {}, output?: Json) =>
    findingsOf(
      aDefinition({
        steps: [
          aStep({ capability: 'join', ...first }),
          aStep({ id: 'b', capability: 'sink', input: { x: '{{ steps.a.output.path }}' }, ...second }),
          aStep({ id: 'c', capability: 'sink' }),
        ],
        ...(output === undefined ? {} : { output }),
      }),
    );
  const skipped: Told = ['note', 'step_may_be_skipped', /a may be skipped, then b is skipped too/];
  const maybe: Told = ['warning', 'path_optional', /steps\.a\.output may be missing: a may be skipped/];

  it('notes that a skipped step skips the next one, where ?? would not help', () => {
    expect(chain({ when: 'job.x' })).toEqual(show([skipped]));
    expect(chain({ optional: true })).toEqual(show([skipped]));
  });

  it('warns where the step runs anyway', () => {
    expect(chain({ when: 'job.x' }, { run_if: 'all_done' })).toEqual(show([maybe]));
    expect(chain({ when: 'job.x' }, { run_if: 'any_succeeded', depends_on: ['c'] })).toEqual(show([maybe]));
    expect(chain({ on_error: 'continue' }, { run_if: 'any_failed' })).toEqual(
      show([['warning', 'path_optional', /a may fail/]]),
    );
    expect(chain({}, { run_if: 'all_done' })).toEqual([]);
  });

  it('lets a condition for each item skip items, not the step', () => {
    const items = { for_each: { items: [1, 2] }, when: 'item > 1' };
    expect(chain(items, { input: {}, depends_on: ['a'] }, '{{ steps.a.output | length }}')).toEqual([]);
    expect(
      chain({ ...items, when: 'job.x' }, { input: {}, depends_on: ['a'] }, '{{ steps.a.output | length }}'),
    ).toEqual(show([maybe]));
    expect(chain(items, { input: {} }, '{{ steps.a.output[0].path }}')).toEqual(
      show([['warning', 'path_optional', /may be/]]),
    );
  });

  it('warns in the output of the pipeline, also of steps after one that may be skipped', () => {
    expect(chain({ when: 'job.x' }, { input: {}, depends_on: ['a'] }, '{{ steps.b.output }}')).toEqual(
      show([['warning', 'path_optional', /steps\.b\.output may be missing: b may be skipped/]]),
    );
    expect(chain({ when: 'job.x' }, { input: {} }, '{{ steps.a.output.path ?? null }}')).toEqual([]);
  });
});

describe('for_each', () => {
  const each = (over: Partial<StepDefinition>, expression = '{{ steps.a.output }}') =>
    findingsOf(
      aDefinition({
        job_schema: object({ clips: { type: 'array', items: object({ file: text }) } }),
        steps: [
          aStep({ capability: 'join', for_each: { items: '{{ job.clips }}' }, ...over }),
          aStep({ id: 'b', capability: 'sink', input: { x: expression } }),
        ],
      }),
    );

  it('makes a list of the output, of which single items may be missing', () => {
    expect(each({}, '{{ steps.a.output[*].path | join(",") }}')).toEqual([]);
    expect(each({}, '{{ steps.a.output.path }}')).toEqual(
      show([['error', 'path_invalid', /list of objects/]]),
    );
    expect(each({ for_each: { items: [1, 2] } }, '{{ steps.a.output[1].path }}')).toEqual([]);
    expect(each({ for_each: { items: [1, 2] } }, '{{ steps.a.output[2].path }}')).toMatchObject([
      { severity: 'error', code: 'path_unknown' },
    ]);
  });

  it('leaves null for items that are tolerated', () => {
    const tolerant = { items: '{{ job.clips }}', tolerate: 1 };
    expect(each({ for_each: tolerant }, '{{ steps.a.output[0].path }}')).toMatchObject([
      { code: 'path_optional', message: expect.stringMatching(/may be missing/) },
      { code: 'path_optional', message: expect.stringMatching(/may be null/) },
    ]);
  });

  it('keeps such a null where every item is tolerated, so that nothing is missing there', () => {
    const tolerant = { items: '{{ job.clips }}', tolerate: 1 };
    expect(each({ for_each: tolerant }, '{{ steps.a.output[*].path }}')).toEqual([]);
    expect(each({ for_each: tolerant }, '{{ steps.a.output[*].none }}')).toMatchObject([
      { severity: 'error', code: 'path_unknown' },
    ]);
  });

  it('knows the type of item and index', () => {
    expect(each({ input: { x: '{{ item.file }}', y: '{{ index | string }}' } })).toEqual([]);
    expect(each({ input: { x: '{{ item.fil }}', y: '{{ index.x }}' } })).toEqual(
      show([
        ['error', 'path_unknown', /item\.fil/, /"file"/],
        ['error', 'path_invalid', /whole number/],
      ]),
    );
  });

  it('takes a list of at most 10,000 items', () => {
    expect(each({ for_each: { items: '{{ job }}' } })).toEqual(
      show([['error', 'type_mismatch', /takes a list, not an object/]]),
    );
    expect(each({ for_each: { items: Array(10_001).fill(0) } })).toEqual(
      show([['error', 'items_limit', /at most 10000 items, not 10001/]]),
    );
  });
});

test('a condition is a boolean, a concurrency key is text', () => {
  const definition = aDefinition({
    concurrency: { key: '{{ job }}', limit: 1 },
    steps: [
      aStep({ capability: 'join' }),
      aStep({ id: 'b', capability: 'sink', when: 'steps.a.output.path' }),
    ],
  });
  expect(findingsOf(definition)).toEqual(
    show([
      ['error', 'operand_invalid', /a boolean is needed, not a string/],
      ['error', 'type_mismatch', /concurrency\.key .* not an object/],
    ]),
  );
});

test('an input that one expression gives is an object', () => {
  const findings = (input: string) =>
    findingsOf(
      aDefinition({
        steps: [
          aStep({ id: 'a', capability: 'join' }),
          aStep({ id: 'b', capability: 'unknown', input, for_each: { items: [{ n: 1 }] } }),
        ],
      }),
    ).filter(({ severity }) => severity === 'error');
  expect(findings('{{ item }}')).toEqual([]);
  expect(findings('{{ job.any }}')).toEqual([]);
  for (const input of ['{{ index }}', '{{ steps.a.output.path }}', '{{ index }} {{ index }}'])
    expect(findings(input)).toMatchObject([{ pointer: '/steps/1/input' }]);
});

test('waits yield null, reviews the type of their schema', () => {
  const definition = aDefinition({
    steps: [
      { id: 'w', wait: '1s' },
      { id: 'r', review: { title: 'ok?', schema: object({ ok: { type: 'boolean' } }) } },
      aStep({
        capability: 'sink',
        when: 'steps.r.output.ok',
        input: { x: '{{ steps.w.output | length }}', y: '{{ steps.r.output.text }}' },
      }),
    ],
  });
  expect(findingsOf(definition).map(({ code, pointer }) => [code, pointer])).toEqual([
    ['operand_invalid', '/steps/2/input/x'],
    ['path_unknown', '/steps/2/input/y'],
  ]);
});

describe('values that are set', () => {
  const shaped = (
    input: JsonObject,
    set: JsonObject = { n: '{{ steps.a.output.frames }}', list: [1, 'x'] },
  ) =>
    aDefinition({
      steps: [
        aStep({ id: 'a', capability: 'join' }),
        { id: 'shaped', set },
        aStep({ id: 'b', capability: 'sink', input }),
      ],
    });

  test.each([
    ['{{ steps.shaped.output.n + 1 }}', []],
    ['{{ steps.shaped.output.list[1] | upper }}', []],
    ['{{ steps.shaped.output.n | upper }}', [['error', 'operand_invalid', /not a whole number/]]],
    ['{{ steps.shaped.output.m }}', [['error', 'path_unknown', /has n, list/]]],
  ] as [string, Told[]][])('have the types of their expressions: %s', (x, told) => {
    expect(findingsOf(shaped({ x }))).toHaveLength(told.length);
    for (const [index, [severity, code, message]] of told.entries()) {
      expect(findingsOf(shaped({ x }))[index]).toMatchObject({ severity, code, pointer: '/steps/2/input/x' });
      expect(findingsOf(shaped({ x }))[index]?.message).toMatch(message ?? /./);
    }
  });

  it('are checked where they are written', () => {
    expect(findingsOf(shaped({}, { n: '{{ steps.a.output.pth }}' }))).toMatchObject([
      { code: 'path_unknown', pointer: '/steps/1/set/n' },
    ]);
  });
});

describe('the answer of a model to a schema', () => {
  const chat: Schemas = {
    output: {
      type: 'object',
      properties: { text, json: {}, tool_calls: { type: 'array' } },
      additionalProperties: false,
    },
  };
  const plain: Schemas = { output: object({ text }) };
  const response_schema = object(
    { title: text, tags: { type: 'array', items: text } },
    { required: ['title'] },
  );
  const askedFor = (
    expression: string,
    input: JsonObject,
    { over = {}, capability = 'model.editor' }: { over?: Partial<StepDefinition>; capability?: string } = {},
  ) => {
    const a = { ...aStep({ id: 'a', capability, input }), ...over };
    const steps = [a, aStep({ id: 'b', capability: 'sink', input: { x: expression } })];
    const known = { ...capabilities, 'model.editor': chat, 'model.plain': plain, editor: chat };
    return findingsOf(aDefinition({ steps }), known);
  };

  it.each<[expression: string, told: Told[]]>([
    ['{{ steps.a.output.json.title }}', []],
    ['{{ steps.a.output.json.titel }}', [['error', 'path_unknown', /titel never exists/, /"title"/]]],
    ['{{ steps.a.output.json.tags[*] }}', [['warning', 'path_optional', /tags/]]],
    ['{{ steps.a.output.json.title | length }}', []],
    ['{{ steps.a.output.json.title + 1 }}', [['error', 'operand_invalid', /./]]],
    ['{{ steps.a.output.text }}', [['warning', 'path_optional', /text/]]],
  ])('has its type: %s', (expression, told) => {
    expect(askedFor(expression, { response_schema })).toEqual(show(told));
  });

  const mayBeMissing: Told[] = [['warning', 'path_optional', /json may be missing/, /\?\?/]];
  it.each<[name: string, input: JsonObject, more: Parameters<typeof askedFor>[2], told: Told[]]>([
    ['no schema is asked for', {}, {}, mayBeMissing],
    ['the model may call a tool', { response_schema, tools: [] }, {}, mayBeMissing],
    ['there may be several answers', { response_schema, n: 2 }, {}, mayBeMissing],
    [
      'a person may give the output',
      { response_schema },
      { over: { allow_output: true } },
      [['warning', 'review_unused', /allow_output/], ...mayBeMissing],
    ],
    [
      'the schema is none',
      { response_schema: { enum: Array.from({ length: 10_001 }, () => 1) } },
      {},
      mayBeMissing,
    ],
    ['it is no model', { response_schema }, { capability: 'editor' }, mayBeMissing],
    ['the schema is known later', { response_schema: '{{ job.schema }}' }, {}, mayBeMissing],
    [
      'a part of the schema is known later',
      { response_schema: { type: 'object', title: '{{ job.x }}' } },
      {},
      mayBeMissing,
    ],
    [
      'the model has no such field',
      { response_schema },
      { capability: 'model.plain' },
      [['error', 'path_unknown', /json/]],
    ],
  ])('has the type of the spec where %s', (_, input, more, told) => {
    expect(askedFor('{{ steps.a.output.json.any }}', input, more)).toEqual(show(told));
  });
});
