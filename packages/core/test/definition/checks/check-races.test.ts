import { expect, it } from 'vitest';
import { readDefinition } from '../../../src/definitions/read-definition.ts';
import { factsOfMocks } from '../../../src/mock-run/prepare-run.ts';

const output = { type: 'object', required: ['v'], properties: { v: { type: 'string' } } };

function findingsOf(value: string, first = 1, more: readonly object[] = []): string[] {
  const steps = [
    { id: 'a', capability: 'x' },
    { id: 'b', capability: 'x' },
    { id: 'j', first, depends_on: ['a', 'b'], set: { v: value } },
    ...more,
  ];
  const text = JSON.stringify({ pipeline: 'p', version: '1', steps });
  const facts = factsOfMocks({ capabilities: { x: { output } } } as never, []);
  const { findings } = readDefinition({ text, contentType: 'application/json' }, facts);
  return findings.map(({ code, pointer }) => `${code} ${pointer}`);
}

it.each([
  ['a branch may be missing in the step that starts with the first', '{{ steps.a.output.v }}', 1, true],
  ['a default covers that', '{{ steps.a.output.v ?? steps.b.output.v ?? "" }}', 1, false],
  ['every branch has an output where all are needed', '{{ steps.a.output.v }}', 2, false],
] as const)('%s', (_, value, first, isOptional) => {
  expect(findingsOf(value, first).some((text) => text === 'path_optional /steps/2/set/v')).toBe(isOptional);
});

it('a branch that another step needs too is noted: it is not called off', () => {
  const other = { id: 'k', depends_on: ['b'], set: {} };
  expect(findingsOf('', 1, [other])).toEqual(['race_shared /steps/2/first']);
});
