/** What the editor offers, explains and finds while a text is being written, which is broken most of the time. */

import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import { describeKeys } from '@capstan/core/definitions/findings';
import { Text } from '@codemirror/state';
import { describe, expect, test } from 'vitest';
import { offerAt } from '../src/editor/completion.ts';
import { toDiagnostics } from '../src/editor/diagnostics.ts';
import { type EditorFacts, emptyOutline, readOutline } from '../src/editor/facts.ts';
import { describeAt } from '../src/editor/hover.ts';
import { pathAt, stepLines } from '../src/editor/place.ts';
import { beginMocks } from '../src/pages/edit/example.ts';
import { checkText } from '../src/worker/check-text.ts';
import type { LiveSpecs } from '../src/worker/messages.ts';
import { tryText } from '../src/worker/try-text.ts';

const text = `pipeline: p
version: "1"
job_schema:
  type: object
  properties:
    clip: { type: string, description: A film of the media store }
steps:
  - id: cut
    capability: trim
    input:
      clip: "{{ job.clip }}"
  - id: mix
    capability: mix
    input:
      film: "{{ steps.cut.output.clip }}"
`;

const specs: LiveSpecs = {
  trim: {
    description: 'Cuts a film',
    instances: [{ cost_model: { type: 'per_call', rate_usd: 0.002 } }],
    input: {
      type: 'object',
      required: ['clip'],
      properties: {
        clip: { type: 'string', description: 'What is cut' },
        range: { type: 'object', properties: { from: { type: 'number' }, to: { type: 'number' } } },
      },
    },
    output: { type: 'object', properties: { clip: { type: 'string' }, length: { type: 'number' } } },
  },
  mix: { description: '', instances: [], input: {}, output: {} },
};

function factsOf(before: string): EditorFacts {
  return { ...readOutline(before, emptyOutline), specs, keys: describeKeys() };
}

/** The offers at `|`, which replaces `found`; known names are of the text without the change. */
function offered(found: string, written: string): readonly (readonly [string, string | undefined])[] {
  const changed = text.replace(found, written);
  const facts: EditorFacts = {
    ...readOutline(changed.replace('|', ''), readOutline(text, emptyOutline)),
    specs,
    keys: describeKeys(),
  };
  const lines = changed.split('\n');
  const at = lines.findIndex((line) => line.includes('|'));
  const before = lines[at]?.split('|')[0] ?? '';
  const offer = offerAt({ lines: lines.with(at, lines[at]?.replace('|', '') ?? ''), at, before }, facts);
  return (offer?.options ?? []).map(({ label, detail }) => [label, detail] as const);
}

describe('completion', () => {
  test('capabilities have their price', () => {
    expect(offered('capability: trim', 'capability: t|')).toEqual([
      ['trim', '$0.002 a call'],
      ['mix', 'no instance'],
    ]);
  });

  test.each([
    ['in an unclosed quote', '"{{ steps.cut.output.|'],
    ['in an expression that is not finished', '"{{ steps.cut.output.| }}"'],
  ])('%s, the fields of an output are offered with their types', (_, written) => {
    expect(offered('"{{ steps.cut.output.clip }}"', written)).toEqual([
      ['clip', 'string'],
      ['length', 'number'],
    ]);
  });

  test('under input, the fields of the capability are offered, not the keys of a step', () => {
    const fields = [
      ['clip', 'string, required'],
      ['range', 'object'],
    ];
    expect(offered('clip: "{{ job.clip }}"', 'c|')).toEqual(fields);
    expect(offered('    input:\n      clip: "{{ job.clip }}"', '    input: { c|')).toEqual(fields);
    expect(offered('clip: "{{ job.clip }}"', 'range:\n        f|')).toEqual([
      ['from', 'number'],
      ['to', 'number'],
    ]);
  });

  test('steps, and the fields of the job, are known inside of expressions', () => {
    expect(offered('steps.cut.output.clip', 'steps.c|')).toEqual([
      ['cut', 'trim'],
      ['mix', 'mix'],
    ]);
    expect(offered('job.clip', 'job.|')).toEqual([['clip', 'string']]);
    for (const written of ['j|', '[j|', '[job.clip,j|', '{\\"a\\":j|']) {
      expect(offered('job.clip', written).map(([label]) => label)).toContain('job');
    }
    expect(offered('job.clip', 'job[j|')).toEqual([]);
  });

  test('keys that a step has are not offered again, and a new step is offered as a whole', () => {
    const keys = offered('    input:\n      film', '    w|\n    input:\n      film').map(([label]) => label);
    expect(keys).toEqual(expect.arrayContaining(['when', 'retry']));
    expect(keys).not.toContain('capability');
    expect(offered('  - id: mix', '  - |').map(([label]) => label)).toContain('review step');
    expect(offered('version: "1"', 'l|').map(([label]) => label)).toContain('labels');
  });
});

test('a path is derived from the indentation, whatever is broken elsewhere', () => {
  const lines = text.split('\n');
  expect(pathAt(lines, 10)).toEqual(['steps', '[]', 'input']);
  expect(pathAt(lines, 8)).toEqual(['steps', '[]']);
  expect(pathAt(lines, 7)).toEqual(['steps', '[]']);
  expect(pathAt(lines, 1)).toEqual([]);
  expect(pathAt(['steps:', '- id: a', '  input:', '    x:', '    - y: 1'], 4)).toEqual([
    'steps',
    '[]',
    'input',
    'x',
    '[]',
  ]);
  expect(stepLines(lines, 10)).toEqual(lines.slice(7, 11));
});

test.each([
  ['capability: trim', { title: 'trim', detail: '$0.002 a call', about: 'Cuts a film' }],
  ['steps.cut.output.clip', { title: 'clip', detail: 'string', about: '' }],
  ['job.clip', { title: 'clip', detail: 'string', about: 'A film of the media store' }],
  ['      clip', { title: 'clip', detail: 'string, required', about: 'What is cut' }],
])('hover explains the text at %j', (found, described) => {
  const lines = text.split('\n');
  const at = lines.findIndex((line) => line.includes(found));
  const end = (lines[at]?.indexOf(found) ?? 0) + found.length;
  expect(describeAt({ lines, at, before: lines[at]?.slice(0, end) ?? '' }, factsOf(text))).toEqual(described);
});

describe('findings', () => {
  const steps = (...lines: string[]): string =>
    ['pipeline: p', 'version: "1"', 'steps:', '  - id: a', '    capability: trim', ...lines, ''].join('\n');

  test.each([
    [
      'a quote that is not closed',
      steps('    input: { clip: "a }', '    when: job.x', '  - id: b', '    wait: 1s'),
    ],
    ['a step indented wrong', steps('    input: {}', '   - id: b', '     capability: trim', '     wait: 1s')],
    ['a colon too many', steps('    when: a: b: c')],
    ['a brace that is not closed', steps('    input: { clip: a', '  - id: b', '    wait: 1s')],
  ])('%s is one finding, without the words of a parser', (_, broken) => {
    const { findings } = checkText(broken, specs);
    expect(findings.map(({ code }) => code)).toEqual(['yaml_syntax']);
    expect(findings[0]?.message).not.toMatch(/scalar|mapping|flow|implicit|collection|node/i);
  });

  test('a name that is nearly right is mended by the name alone', () => {
    const broken = steps('    inpt: {}').replace('trim', 'mix');
    const { findings } = checkText(broken, specs);
    const [diagnostic] = toDiagnostics(Text.of(broken.split('\n')), findings);
    expect(diagnostic?.message).toBe('did you mean "input"? unknown key "inpt"');
    expect(diagnostic?.actions?.map(({ name }) => name)).toEqual(['Use input']);
    expect(broken.slice(diagnostic?.from, diagnostic?.to)).toBe('inpt');
  });
});

test('mocks begin with an example of the job that the pipeline asks for', async () => {
  const definition: PipelineDefinition = {
    pipeline: 'p',
    version: '1',
    job_schema: {
      type: 'object',
      required: ['clips', 'name'],
      properties: {
        clips: { type: 'array', items: { type: 'string', pattern: '^media://' } },
        name: { type: 'string', minLength: 6 },
        loud: { type: 'boolean', default: true },
      },
    },
    steps: [{ id: 'a', wait: '1s', when: 'job.loud && job.clips[0] != job.name' }],
  };
  const request = {
    text: JSON.stringify(definition),
    mocks: beginMocks(definition),
    job: {},
    specs,
    pipelines: [],
  };
  const { problems, result } = await tryText(request);
  expect(problems).toEqual([]);
  expect(result?.outcome).toBe('succeeded');
});
