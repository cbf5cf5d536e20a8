import { describe, expect, it } from 'vitest';
import { countProcessorMs } from '../../../../../test/support/processor-time.ts';
import type { PipelineDefinition } from '../../../src/contracts/pipeline.ts';
import type { Json } from '../../../src/contracts/primitives.ts';
import {
  checkDefinition,
  checkInPieces,
  checkKeys,
} from '../../../src/definition/checks/check-definition.ts';
import { aDefinition, aStep } from './a-definition.ts';

function withInput(input: Record<string, Json>) {
  return aDefinition({ steps: [aStep({ id: 'first' }), aStep({ id: 'second', input })] });
}

function findingsOf(definition: PipelineDefinition) {
  return checkDefinition(definition, { knownCapabilities: null, strict: false });
}

const faulty: [
  rule: string,
  PipelineDefinition,
  code: string,
  pointer: string,
  message: RegExp,
  suggestion?: RegExp,
][] = [
  [
    'an id used twice',
    aDefinition({ steps: [aStep(), aStep({ id: 'b' }), aStep()] }),
    'step_duplicate',
    '/steps/2/id',
    /a is taken by step 1;/,
  ],
  [
    'a step that depends on itself',
    aDefinition({ steps: [aStep({ depends_on: ['a'] })] }),
    'step_self_dependency',
    '/steps/0/depends_on/0',
    /itself/,
  ],
  [
    'an unknown step in depends_on',
    aDefinition({ steps: [aStep({ id: 'cut' }), aStep({ depends_on: ['cut', 'cot'] })] }),
    'step_unknown',
    '/steps/1/depends_on/1',
    /no step cot/,
    /"cut"/,
  ],
  [
    'an unknown step in an expression',
    withInput({ x: 'a {{ steps.frist.output }}' }),
    'step_unknown',
    '/steps/1/input/x',
    /no step frist/,
    /"first"/,
  ],
  [
    'an unknown step in the output',
    aDefinition({ output: ['{{ steps.b.output }}'] }),
    'step_unknown',
    '/output/0',
    /no step b/,
  ],
  [
    'steps without an id',
    withInput({ x: '{{ steps | json }}' }),
    'step_unknown',
    '/steps/1/input/x',
    /steps\.<id>\.output/,
  ],
  [
    'all steps at once',
    withInput({ x: '{{ steps[*].output }}' }),
    'step_unknown',
    '/steps/1/input/x',
    /steps\.<id>\.output/,
  ],
  [
    'a field that steps do not have',
    withInput({ x: '{{ steps.first.outptu.y }}' }),
    'field_unknown',
    '/steps/1/input/x',
    /steps\.first\.outptu does not exist/,
    /"output"/,
  ],
  [
    'an output field without output',
    withInput({ x: '{{ steps.first.media_path }}' }),
    'field_unknown',
    '/steps/1/input/x',
    /media_path/,
    /steps\.first\.output\.<field>/,
  ],
  [
    'a step as a whole',
    withInput({ x: '{{ steps.first }}' }),
    'field_unknown',
    '/steps/1/input/x',
    /followed by one of output/,
  ],
  [
    'a field that runs do not have',
    withInput({ x: '{{ run.jobid }}' }),
    'field_unknown',
    '/steps/1/input/x',
    /run\.jobid/,
    /"job_id"/,
  ],
  [
    'a step that mentions itself',
    withInput({ x: '{{ steps.second.output ?? 1 }}' }),
    'expression_own_step',
    '/steps/1/input/x',
    /second mentions itself/,
  ],
  [
    'item outside for_each',
    withInput({ x: '{{ item.path }}' }),
    'root_unavailable',
    '/steps/1/input/x',
    /for_each/,
  ],
  [
    'index outside for_each',
    withInput({ x: '{{ index ?? 0 }}' }),
    'root_unavailable',
    '/steps/1/input/x',
    /for_each/,
  ],
  [
    'an unknown root',
    withInput({ x: ['{{ jb.a }}'] }),
    'root_unknown',
    '/steps/1/input/x/0',
    /"jb"/,
    /"job"/,
  ],
  [
    'an unknown filter',
    withInput({ x: '{{ job.a | lenght }}' }),
    'filter_unknown',
    '/steps/1/input/x',
    /"lenght"/,
    /"length"/,
  ],
  [
    'a syntax error',
    withInput({ x: '{{ job. }}' }),
    'expression_syntax',
    '/steps/1/input/x',
    /name after the dot/,
  ],
  [
    'a forbidden step id',
    aDefinition({ steps: [aStep({ id: 'constructor' })] }),
    'name_forbidden',
    '/steps/0/id',
    /constructor/,
  ],
  [
    'a forbidden pipeline name',
    aDefinition({ pipeline: '__proto__' }),
    'name_forbidden',
    '/pipeline',
    /__proto__/,
  ],
  [
    'a wrong semver range',
    aDefinition({ steps: [aStep({ capability_version: 'newest' })] }),
    'semver_range_invalid',
    '/steps/0/capability_version',
    /"newest"/,
  ],
  [
    'an attempt of more than a day',
    aDefinition({ steps: [aStep({ timeout: '25h' })] }),
    'duration_out_of_range',
    '/steps/0/timeout',
    /25h is outside 1ms to 24h/,
  ],
  [
    'a default attempt of more than a day',
    aDefinition({ defaults: { timeout: '1441m' } }),
    'duration_out_of_range',
    '/defaults/timeout',
    /24h/,
  ],
  ['no time at all', aDefinition({ timeout: '0s' }), 'duration_out_of_range', '/timeout', /0s/],
  [
    'a pause beyond all bounds',
    aDefinition({ steps: [aStep({ retry: { initial: `${'9'.repeat(400)}d` } })] }),
    'duration_out_of_range',
    '/steps/0/retry/initial',
    /outside/,
  ],
];

describe('checkDefinition', () => {
  it.each(faulty)('finds %s', (_, definition, code, pointer, message, suggestion) => {
    const findings = findingsOf(definition);
    expect(findings).toHaveLength(1);
    expect(findings[0]).toMatchObject({
      severity: 'error',
      code,
      pointer,
      message: expect.stringMatching(message),
    });
    if (suggestion) expect(findings[0]?.suggestion).toMatch(suggestion);
  });

  it('accepts every root, field and limit that is allowed', () => {
    const definition = aDefinition({
      timeout: '7d',
      defaults: { timeout: '24h', retry: { initial: '0s', max_delay: '24h' } },
      output: { x: '{{ steps.first.error ?? steps.second.output }}', y: '{{ run.version }}' },
      steps: [
        aStep({
          id: 'second',
          depends_on: ['first'],
          capability_version: '>=1.2 <3',
          input: { s: '{{ steps.first.status }}' },
        }),
        aStep({
          id: 'first',
          input: { j: '{{ job }}', r: '{{ run.id }}{{ run.job_id }}{{ run.attempt }}{{ run.pipeline }}' },
        }),
      ],
    });
    expect(findingsOf(definition)).toEqual([]);
  });

  it('shows the path of a cycle, whether by depends_on or by expressions', () => {
    const definition = aDefinition({
      steps: [
        aStep({ id: 'start' }),
        aStep({ id: 'a', depends_on: ['start', 'b'] }),
        aStep({ id: 'b', input: { x: '{{ steps.c.output ?? 1 }}' } }),
        aStep({ id: 'c', depends_on: ['a'] }),
      ],
    });
    expect(findingsOf(definition)).toEqual([
      {
        severity: 'error',
        code: 'cycle',
        pointer: '/steps/1',
        message: 'each of these steps waits for the next: a -> b -> c -> a',
      },
    ]);
  });

  it('reports all findings at once', () => {
    const definition = aDefinition({
      timeout: '31d',
      steps: [
        aStep({ depends_on: ['b', 'x'], input: { p: '{{ jbo.a }}', q: '{{ run.x }} {{ item }}' } }),
        aStep({ id: 'b', depends_on: ['a'] }),
      ],
    });
    expect(
      findingsOf(definition)
        .map(({ code }) => code)
        .sort(),
    ).toEqual([
      'cycle',
      'duration_out_of_range',
      'field_unknown',
      'root_unavailable',
      'root_unknown',
      'step_unknown',
    ]);
  });

  it('reports where in a string the expression is', () => {
    expect(findingsOf(withInput({ x: 'é {{ steps.frist.output }}' }))[0]?.offset).toBe(5);
    expect(findingsOf(withInput({ x: 'é {{ job.a | nope }}' }))[0]?.offset).toBe(13);
  });

  it('allows 50,000 expressions in a definition and no more', () => {
    const holding = (count: number) =>
      withInput({ x: Array(count - 1).fill('{{ job.a }}'), y: '{{ job.b }}' });
    expect(findingsOf(holding(50_000))).toEqual([]);
    expect(findingsOf(holding(50_001))).toMatchObject([
      { code: 'expression_limit', message: expect.stringContaining('50001') },
    ]);
  });

  it('warns of unregistered capabilities, refuses them when strict, and is silent when none are known', () => {
    const definition = aDefinition({
      steps: [aStep({ capability: 'concta' }), aStep({ id: 'b', capability: 'concat' })],
    });
    const knownCapabilities = new Set(['concat', 'audio-mix']);
    const finding = {
      severity: 'warning',
      code: 'capability_unknown',
      pointer: '/steps/0/capability',
      message: 'no instance of concta is registered',
      suggestion: 'did you mean "concat"?',
    };
    expect(checkDefinition(definition, { knownCapabilities, strict: false })).toEqual([finding]);
    expect(checkDefinition(definition, { knownCapabilities, strict: true })).toEqual([
      { ...finding, severity: 'error' },
    ]);
    expect(findingsOf(definition)).toEqual([]);
  });

  it('stays quick when thousands of names are wrong', () => {
    // Unless compared names are bounded, four million, of which each takes a microsecond or more.
    const steps = Array.from({ length: 2_000 }, (_, n) => aStep({ id: `s${n}`, depends_on: [`t${n}x`] }));
    const spentMs = countProcessorMs();
    expect(findingsOf(aDefinition({ steps }))).toHaveLength(2_000);
    expect(spentMs()).toBeLessThan(2_000);
  });
});

describe('checkKeys', () => {
  it('refuses names that reach a prototype at any depth, and points out keys that look like templates', () => {
    const value = JSON.parse(
      '{"a":[{"__proto__":1}],"{{ job.b }}":{"prototype":{"constructor":0}},"~/":{"constructor":1}}',
    );
    expect(checkKeys(value).map(({ severity, code, pointer }) => [severity, code, pointer])).toEqual([
      ['error', 'name_forbidden', '/a/0/__proto__'],
      ['warning', 'key_not_template', '/{{ job.b }}'],
      ['error', 'name_forbidden', '/{{ job.b }}/prototype'],
      ['error', 'name_forbidden', '/{{ job.b }}/prototype/constructor'],
      ['error', 'name_forbidden', '/~0~1/constructor'],
    ]);
  });
});

describe('checkInPieces', () => {
  const facts = { knownCapabilities: new Set<string>(), strict: false };
  const manySteps = (count: number, input: (index: number) => Record<string, Json>) =>
    aDefinition({
      steps: Array.from({ length: count }, (_, index) => aStep({ id: `s${index}`, input: input(index) })),
    });

  it.each<[string, (index: number) => Record<string, Json>]>([
    ['that occur alone', (index) => ({ a: index })],
    ['in a chain', (index) => ({ a: index === 0 ? 1 : `{{ steps.s${index - 1}.output.a }}` })],
    ['that are wrong', (index) => ({ a: `{{ steps.t${index}.output }}` })],
  ])('takes a piece for each few hundred of steps %s, and finds the same', (_, input) => {
    const definition = manySteps(3_000, input);
    const pieces = checkInPieces(definition, facts);
    let count = 1;
    let next = pieces.next();
    for (; next.done !== true; next = pieces.next()) count++;
    expect(count).toBeGreaterThan(15);
    expect(next.value).toEqual(checkDefinition(definition, facts));
  });

  it('takes one piece for a definition of usual size', () => {
    const pieces = checkInPieces(
      manySteps(100, (index) => ({ a: index })),
      facts,
    );
    expect(pieces.next().done).toBe(true);
  });
});
