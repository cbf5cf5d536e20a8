import { describe, expect, it } from 'vitest';
import { readMocks } from '../../src/mock-run/read-mocks.ts';

function findings(text: string) {
  return readMocks(text, 'application/yaml').findings;
}

describe('reading a mocks file', () => {
  it('finds every unknown key at its place, and suggests the right one', () => {
    const text = ['capabilitys: {}', 'capabilities:', '  x:', '    replies:', '      - delai: 1s'].join('\n');
    expect(findings(text)).toMatchObject([
      { code: 'key_unknown', pointer: '/capabilitys', line: 1, suggestion: 'did you mean "capabilities"?' },
      {
        code: 'key_unknown',
        pointer: '/capabilities/x/replies/0/delai',
        line: 5,
        suggestion: 'did you mean "delay"?',
      },
    ]);
  });

  it('finds keys that are unknown in an expected step, and in an inline pipeline', () => {
    const text = [
      'expect: { steps: { a: { stat: failed } } }',
      'pipelines: [{ pipeline: p, version: "1", steps: [{ id: a, capabilty: x }] }]',
    ].join('\n');
    expect(findings(text).map(({ pointer, suggestion }) => [pointer, suggestion])).toEqual([
      ['/expect/steps/a/stat', 'did you mean "state"?'],
      ['/pipelines/0/steps/0/capabilty', 'did you mean "capability"?'],
    ]);
  });

  it('reads conditions and outputs over input, and nothing else', () => {
    const text = [
      'capabilities:',
      '  x:',
      '    replies:',
      '      - { when: job.n == 1 }',
      '      - { output: "{{ steps.a.output }}" }',
      '      - { when: "input.n =" }',
    ].join('\n');
    expect(findings(text).map(({ code, pointer }) => [code, pointer])).toEqual([
      ['root_unknown', '/capabilities/x/replies/0/when'],
      ['root_unknown', '/capabilities/x/replies/1/output'],
      ['expression_syntax', '/capabilities/x/replies/2/when'],
    ]);
  });

  it('finds what is wrong with a price by the input', () => {
    const text = [
      'capabilities:',
      '  x:',
      '    cost_model: { type: per_call, rate_usd: 1, worst_case: "{{ job.n }}" }',
      '    instances: [{ cost_model: { type: per_second, rate_usd: 1, expected: "{{ input.n }} USD" } }]',
      '  y: { cost_model: { type: per_call, rate_usd: 1, worst_case: "{{ input.n * 2 }}" } }',
    ].join('\n');
    expect(findings(text).map(({ pointer, line }) => [pointer, line])).toEqual([
      ['/capabilities/x/cost_model/worst_case', 3],
      ['/capabilities/x/instances/0/cost_model/expected', 4],
    ]);
  });

  it('finds instances that take more slots than their host has', () => {
    const text = [
      'capabilities:',
      '  x: { host: { name: gpu-1, slots: 2 }, takes: 3 }',
      '  y: { host: { name: gpu-1, slots: 2 }, instances: [{ takes: 2 }, { takes: 3 }] }',
      '  z: { takes: 1 }',
    ].join('\n');
    expect(findings(text).map(({ pointer, message }) => [pointer, message])).toEqual([
      ['/capabilities/x/takes', 'takes is 3; 1 to 2, the slots of gpu-1, are allowed'],
      ['/capabilities/y/instances/1/takes', 'takes is 3; 1 to 2, the slots of gpu-1, are allowed'],
      ['/capabilities/z/takes', 'takes is 1, and the registration names no host: it counts slots of one'],
    ]);
  });

  it('refuses two ends of one call, and a schema that is none', () => {
    const text = [
      'capabilities:',
      '  x: { replies: [{ output: 1, lost: true }] }',
      '  y: { input: { type: nonsense } }',
    ].join('\n');
    expect(findings(text)).toMatchObject([
      { message: 'a reply has at most one of output, error, garbage, lost and refused' },
    ]);
    expect(findings('capabilities: { y: { input: { type: nonsense } } }')).toMatchObject([
      { code: 'schema_invalid', pointer: '/capabilities/y/input' },
    ]);
  });

  it('takes an empty file', () => {
    expect(readMocks('', 'application/yaml')).toEqual({ mocks: {}, findings: [] });
  });
});
