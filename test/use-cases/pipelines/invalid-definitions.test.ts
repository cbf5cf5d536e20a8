/** Each way in which a definition is wrong has a code of its own, and names its place. */

import type { CapabilitySpec } from '@capstan/core/contracts/capability';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { createReferenceJudge, type PipelineNode } from '@capstan/core/definition/checks/check-availability';
import type { DefinitionFacts, PipelineForm } from '@capstan/core/definition/checks/finding';
import { findingCodes } from '@capstan/core/definition/checks/finding';
import { shapeCodes } from '@capstan/core/definitions/findings';
import { createInputForms } from '@capstan/core/definitions/input-forms';
import { readDefinition } from '@capstan/core/definitions/read-definition';
import { sourceCodes } from '@capstan/core/definitions/source/source-node';
import { expect, it, test } from 'vitest';

function aSpec(input: JsonObject, output: JsonObject): CapabilitySpec {
  return {
    name: 'x',
    version: '1',
    description: '',
    input,
    output,
    cost_model: { type: 'free', rate_usd: 0 },
  };
}

const path = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] };

const specs: Record<string, CapabilitySpec> = {
  concat: aSpec(
    {
      type: 'object',
      properties: {
        clips: { type: 'array', items: { type: 'string' } },
        fade: { type: 'number', maximum: 9 },
      },
      required: ['clips'],
      additionalProperties: false,
    },
    {
      ...path,
      properties: { ...path.properties, preview: { type: 'string' } },
      additionalProperties: false,
    },
  ),
  open: aSpec({}, path),
  large: aSpec(
    {},
    {
      type: 'object',
      properties: { v: { type: 'array', items: { type: 'number' }, minItems: 9_000_000 } },
      required: ['v'],
    },
  ),
  wide: aSpec(
    {
      type: 'object',
      properties: Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`property_${n}`, {}])),
      additionalProperties: false,
    },
    {},
  ),
};

const forms = createInputForms();
const nodes = new Map<string, PipelineNode>(
  ['1', '2', '3', '4', '5', '6', '7'].map((version, index) => [
    `deep@${version}`,
    { pipeline: 'deep', version, references: index < 6 ? [`deep@${index + 2}`] : [] },
  ]),
);
nodes.set('back@1', { pipeline: 'back', version: '1', references: ['trailer@1'] });
nodes.set('other@1', { pipeline: 'other', version: '1', references: [], isContradicted: true });
const judge = createReferenceJudge({ pipeline: 'trailer', version: '1', references: [] }, (reference) =>
  nodes.get(reference),
);
const many: PipelineForm = { kind: 'refused', code: 'pipeline_limit', message: 'too many' };

const facts: DefinitionFacts = {
  knownCapabilities: new Set(['concat', 'large', 'open', 'wide', 'model.fast']),
  strict: true,
  specsOf: ({ capability = '' }) => {
    const spec = specs[capability];
    return spec === undefined ? [] : [forms.ofSpec(capability) ?? forms.addSpec(capability, spec)];
  },
  secrets: new Map([
    ['token', { name: 'token', bytes: 20, capabilities: ['concat'] }],
    ['key', { name: 'key', bytes: 65_536, capabilities: ['open'] }],
    ['other-key', { name: 'other-key', bytes: 65_536, capabilities: ['open'] }],
  ]),
  pipelineOf: (reference) => (reference === 'many@1' ? many : (judge(reference) ?? undefined)),
};

const head = 'pipeline: trailer\nversion: "1"\n';
function steps(...lines: string[]): string {
  return `${head}steps:\n${lines.map((line) => `  ${line}\n`).join('')}`;
}
/** A step `a` that is sound, and one with these keys from line 7. */
function second(...lines: string[]): string {
  return steps(
    '- id: a',
    '  capability: concat',
    '  input: {clips: []}',
    '- id: b',
    ...lines.map((line) => `  ${line}`),
  );
}
function json(text: string): string {
  return `{"pipeline":"trailer","version":"1","steps":[{"id":"a","capability":"open"${text}}]}`;
}

function list<Item>(count: number, item: (n: number) => Item): Item[] {
  return Array.from({ length: count }, (_, n) => item(n));
}

/** Large texts are JSON: YAML takes ten times as long to read. */
function jsonSteps(steps: readonly object[]): string {
  return JSON.stringify({ pipeline: 'trailer', version: '1', steps });
}

type Row = [text: string, place: string];

/** By code: a text and the line, column and pointer of what is found. */
const rows: Readonly<Record<string, Row>> = {
  cache_unused: [second('capability: open', 'cache: {ttl: 1h}'), '9:12 /steps/1/cache'],
  capability_unknown: [second('capability: concta'), '8:17 /steps/1/capability'],
  comparison_constant: [second('capability: open', 'when: steps.a.output.path == 1'), '9:11 /steps/1/when'],
  cycle: [
    steps('- {id: a, capability: open, depends_on: [b]}', '- {id: b, capability: open, depends_on: [a]}'),
    '4:5 /steps/0',
  ],
  dispatch_conflict: [
    second('capability: open', 'retry: {max: 0}', 'dispatch: inline'),
    '10:15 /steps/1/dispatch',
  ],
  duration_out_of_range: [second('wait: 91d'), '8:11 /steps/1/wait'],
  edges_limit: [
    jsonSteps(list(320, (n) => ({ id: `s${n}`, capability: 'open', depends_on: list(n, (m) => `s${m}`) }))),
    '1:45 /steps',
  ],
  escalation_levels_swapped: [
    second('capability: open', 'escalate: {start_level: 3, max_level: 1}'),
    '9:29 /steps/1/escalate/start_level',
  ],
  escalation_unused: [
    second('capability: model.fast', 'escalate: {enabled: true}'),
    '9:25 /steps/1/escalate/enabled',
  ],
  expression_unused: [second('capability: open', 'tags: ["{{ job.gpu }}"]'), '9:12 /steps/1/tags/0'],
  retry_conflict: [
    second('capability: open', 'retry: {initial: 5m, max_delay: 1m}'),
    '9:22 /steps/1/retry/initial',
  ],
  retry_unreachable: [
    second('capability: open', 'retry: {max: 9, initial: 1m}', 'total_timeout: 5m'),
    '9:12 /steps/1/retry',
  ],
  expression_limit: [second('capability: open', `when: ${'('.repeat(70)}job.x`), '9:75 /steps/1/when'],
  expression_own_step: [
    second('capability: open', 'input: {x: "{{ steps.b.status }}"}'),
    '9:20 /steps/1/input/x',
  ],
  expression_syntax: [second('capability: open', 'when: job.x ==='), '9:19 /steps/1/when'],
  field_unknown: [second('capability: open', 'when: run.jobid == "x"'), '9:11 /steps/1/when'],
  filter_unknown: [second('capability: open', 'input: {x: "{{ job.x | jsn }}"}'), '9:28 /steps/1/input/x'],
  input_invalid: [second('capability: concat', 'input: {clips: [], fade: 10}'), '9:30 /steps/1/input/fade'],
  items_limit: [
    json(`,"for_each":{"items":[${Array(10_001).fill('1').join(',')}]}`),
    '1:96 /steps/0/for_each/items',
  ],
  key_not_applicable: [second('wait: 1s', 'retry: {max: 1}'), '9:5 /steps/1/retry'],
  key_not_template: [second('capability: open', 'input: {"{{ x }}": 1}'), '9:13 /steps/1/input/{{ x }}'],
  kind_missing: [second('depends_on: [a]'), '7:5 /steps/1'],
  kind_several: [second('capability: open', 'wait: 1s'), '9:11 /steps/1/wait'],
  name_forbidden: [json(',"input":{"constructor":1}'), '1:85 /steps/0/input/constructor'],
  operand_invalid: [second('capability: open', 'when: steps.a.output.path'), '9:11 /steps/1/when'],
  path_invalid: [
    second('capability: open', 'input: {x: "{{ steps.a.output[0] }}"}'),
    '9:20 /steps/1/input/x',
  ],
  path_optional: [second('capability: open', 'when: steps.a.output.preview == "x"'), '9:11 /steps/1/when'],
  path_undescribed: [
    steps(
      '- {id: a, capability: open}',
      '- {id: b, capability: open, input: {x: "{{ steps.a.output.size }}"}}',
    ),
    '5:46 /steps/1/input/x',
  ],
  path_unknown: [
    second('capability: open', 'input: {x: "{{ steps.a.output.pth }}"}'),
    '9:20 /steps/1/input/x',
  ],
  pattern_not_enforced: [
    `${steps('- {id: a, capability: open}')}job_schema: {pattern: "(?!a)"}\n`,
    '5:23 /job_schema/pattern',
  ],
  pipeline_cycle: [second('pipeline: back@1'), '8:15 /steps/1/pipeline'],
  pipeline_depth: [second('pipeline: deep@1'), '8:15 /steps/1/pipeline'],
  pipeline_limit: [second('pipeline: many@1'), '8:15 /steps/1/pipeline'],
  pipeline_unknown: [second('pipeline: reel@1'), '8:15 /steps/1/pipeline'],
  property_missing: [second('capability: concat', 'input: {fade: 1}'), '9:12 /steps/1/input/clips'],
  property_unknown: [second('capability: concat', 'input: {clips: [], fad: 1}'), '9:24 /steps/1/input/fad'],
  review_unused: [
    second('capability: open', 'escalate: {enabled: false}', 'optional: true'),
    '10:15 /steps/1/optional',
  ],
  root_unavailable: [second('capability: open', 'when: item == 1'), '9:11 /steps/1/when'],
  root_unknown: [second('capability: open', 'when: jb.x'), '9:11 /steps/1/when'],
  run_if_unused: [second('capability: open', 'run_if: any_succeeded'), '9:13 /steps/1/run_if'],
  schema_invalid: [
    `${steps('- {id: a, capability: open}')}job_schema: {$ref: "http://x"}\n`,
    '5:13 /job_schema',
  ],
  secret_misplaced: [second('capability: open', 'when: secrets.token == "x"'), '9:11 /steps/1/when'],
  secret_not_allowed: [
    second('capability: open', 'input: {x: "{{ secrets.token }}"}'),
    '9:20 /steps/1/input/x',
  ],
  secret_unknown: [second('capability: open', 'input: {x: "{{ secrets.tokn }}"}'), '9:20 /steps/1/input/x'],
  secrets_too_large: [
    second('capability: open', 'input: {x: "{{ secrets.key }}{{ secrets.other-key }}"}'),
    '9:20 /steps/1/input/x',
  ],
  affinity_invalid: [second('capability: open', 'affinity: "{{ job.model }}"'), '9:15 /steps/1/affinity'],
  semver_range_invalid: [
    second('capability: open', 'capability_version: newest'),
    '9:25 /steps/1/capability_version',
  ],
  step_duplicate: [steps('- {id: a, capability: open}', '- {id: a, capability: open}'), '5:10 /steps/1/id'],
  step_may_be_skipped: [
    steps(
      '- {id: a, capability: open, when: job.x}',
      '- {id: b, capability: open, input: {x: "{{ steps.a.output }}"}}',
    ),
    '5:46 /steps/1/input/x',
  ],
  step_never_runs: [
    second('capability: open', 'depends_on: [a]', 'run_if: any_failed'),
    '10:13 /steps/1/run_if',
  ],
  step_self_dependency: [second('capability: open', 'depends_on: [b]'), '9:18 /steps/1/depends_on/0'],
  step_unknown: [second('capability: open', 'depends_on: [c]'), '9:18 /steps/1/depends_on/0'],
  timeout_unreachable: [
    second('capability: open', 'timeout: 1m', 'total_timeout: 1s'),
    '10:20 /steps/1/total_timeout',
  ],
  type_mismatch: [
    second('capability: concat', 'input: {clips: "{{ steps.a.output.path }}"}'),
    '9:24 /steps/1/input/clips',
  ],
  types_limit: [
    `${head}steps:\n${list(150, (n) => `  - {id: s${n}, capability: wide, input: {prop_${n}: 1}}`).join('\n')}`,
    '1:1',
  ],
  version_conflict: [second('pipeline: other@1'), '8:15 /steps/1/pipeline'],
  // shape
  key_missing: [steps('- {capability: open}'), '4:5 /steps/0/id'],
  key_unknown: [second('capability: open', 'dependson: [a]'), '9:5 /steps/1/dependson'],
  type_invalid: [second('capability: open', 'when: 1'), '9:11 /steps/1/when'],
  value_invalid: [second('capability: open', 'run_if: all_suceeded'), '9:13 /steps/1/run_if'],
  race_conflict: [second('capability: open', 'first: 1', 'run_if: all_done'), '9:12 /steps/1/first'],
  race_shared: [
    steps(
      '- {id: a, capability: open}',
      '- {id: b, capability: open, depends_on: [a]}',
      '- {id: c, capability: open, first: 1, depends_on: [a]}',
    ),
    '6:38 /steps/2/first',
  ],
  race_unreachable: [second('capability: open', 'first: 3'), '9:12 /steps/1/first'],
  repeat_conflict: [
    second('capability: open', 'for_each: {items: [1]}', 'repeat: {until: round.output.x, max: 2}'),
    '10:13 /steps/1/repeat',
  ],
  repeat_useless: [
    second('capability: open', 'repeat: {until: job.x, max: 2}'),
    '9:21 /steps/1/repeat/until',
  ],
  // text
  findings_cut: [jsonSteps(list(1_001, (n) => ({ id: `s${n}`, capability: 'none' }))), 'undefined:undefined'],
  json_syntax: [json(',}'), '1:76 /steps/0'],
  key_duplicate: [second('capability: open', 'id: c'), '9:5 /steps/1/id'],
  list_limit: [
    steps(
      '- {id: a, capability: large, for_each: {items: [1, 2]}}',
      '- {id: b, capability: open, input: {x: "{{ steps.a.output }}"}}',
    ),
    '5:42 /steps/1/input/x',
  ],
  number_inexact: [second('capability: open', 'input: {x: 9007199254740993}'), '9:16 /steps/1/input/x'],
  text_invalid: [second('capability: open', 'input: {x: "a\\0"}'), '9:16 /steps/1/input/x'],
  too_deep: [json(`,"input":{"x":${'['.repeat(120)}`), `1:186 /steps/0/input/x${'/0'.repeat(97)}`],
  too_many_values: [json(`,"input":{"x":[${'1,'.repeat(200_000)}1]}`), '1:400072 /steps/0/input/x/199991'],
  value_not_json: [second('capability: open', 'input: {x: .nan}'), '9:16 /steps/1/input/x'],
  yaml_alias: [second('capability: open', 'input: {x: *none}'), '9:16 /steps/1/input/x'],
  yaml_key: [second('capability: open', 'input: {[x]: 1}'), '9:13 /steps/1/input'],
  yaml_merge: [second('capability: open', 'input: {<<: {x: 1}}'), '9:13 /steps/1/input'],
  yaml_number: [second('capability: open', 'input: {x: 007}'), '9:16 /steps/1/input/x'],
  yaml_several_documents: [`${steps('- {id: a, capability: open}')}---\nx: 1\n`, '5:1'],
  yaml_syntax: [second('capability: open', 'input: {x: "}'), '10:1'],
  yaml_tab: [`${steps('- id: a')}\tcapability: open\n`, '5:1'],
  yaml_tag: [second('capability: open', 'input: {x: !own 1}'), '9:16 /steps/1/input/x'],
  yaml_too_large: [`${head}x: [${'1,'.repeat(300_000)}]`, '1:1'],
  yaml_unquoted_expression: [
    second('capability: open', 'input:', '  x: {{ job.x }}'),
    '10:10 /steps/1/input/x',
  ],
};

const allCodes = [...findingCodes, ...shapeCodes, ...sourceCodes, 'text_invalid', 'findings_cut'];

test('every code has a row', () => {
  expect(Object.keys(rows).sort()).toEqual([...allCodes].sort());
});

it.each(Object.entries(rows))('%s', (code, [text, place]) => {
  const { findings } = readDefinition({ text, contentType: null }, facts);
  const places = findings
    .filter((finding) => finding.code === code)
    .map(({ line, column, pointer }) => `${line}:${column} ${pointer}`.trimEnd());
  expect(places, JSON.stringify(findings.slice(0, 5))).toContain(place);
});
