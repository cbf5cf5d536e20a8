import { describe, expect, it } from 'vitest';
import type { PipelineDefinition } from '../../../src/contracts/pipeline.ts';
import type { Json, JsonObject } from '../../../src/contracts/primitives.ts';
import { checkDefinition } from '../../../src/definition/checks/check-definition.ts';
import { aDefinition, aStep } from './a-definition.ts';
import { capabilities, count, object, type Schemas, show, someFacts, type Told, text } from './some-facts.ts';

function findingsOf(definition: PipelineDefinition, known: Record<string, Schemas>) {
  return checkDefinition(definition, someFacts(known));
}

describe('inputs', () => {
  const mix: Schemas = {
    input: object(
      {
        clips: { type: 'array', items: text, minItems: 1 },
        size: object({ width: count }),
        mode: { enum: ['slow', 'off'] },
      },
      { required: ['clips'] },
    ),
  };

  const into = (input: JsonObject, own: Schemas = mix): ReturnType<typeof findingsOf> =>
    findingsOf(
      aDefinition({ steps: [aStep({ capability: 'join' }), aStep({ id: 'b', capability: 'mix', input })] }),
      { ...capabilities, mix: own },
    );

  const inputs: [rule: string, input: JsonObject, pointer: string, told: Told | null][] = [
    ['a list that fits', { clips: '{{ steps.a.output.parts[*].name }}' }, '', null],
    ['anything from a job without schema', { clips: '{{ job.clips }}', mode: '{{ job.mode }}' }, '', null],
    [
      'a type that never fits',
      { clips: '{{ steps.a.output.path }}' },
      '/clips',
      ['error', 'type_mismatch', /mix takes a list of strings here; steps\.a\.output\.path is a string/],
    ],
    [
      'a list of what never fits',
      { clips: ['{{ steps.a.output.frames }}'] },
      '/clips/0',
      ['error', 'type_mismatch', /a string here; .* is a whole number/],
    ],
    ['no items', { clips: [] }, '/clips', ['error', 'type_mismatch', /1 or more items here, not 0/]],
    ['words of which none is accepted', { clips: ['x'], mode: '{{ steps.a.output.mode }}' }, '', null],
    ['a required key', { mode: 'off' }, '/clips', ['error', 'property_missing', /requires "clips"/]],
    [
      'an unknown key',
      { clips: ['x'], sice: 1 },
      '/sice',
      ['error', 'property_unknown', /does not take "sice"; it takes clips, size, mode/, /"size"/],
    ],
    [
      'an unknown key further in',
      { clips: ['x'], size: { width: '{{ job.w }}', height: 1 } },
      '/size/height',
      ['error', 'property_unknown', /"height"/],
    ],
    [
      'a key missing further in',
      { clips: ['x'], size: {} },
      '/size/width',
      ['error', 'property_missing', /"width"/],
    ],
    [
      'text where a number goes',
      { clips: ['x'], size: { width: '{{ job.w }}px' } },
      '/size/width',
      ['error', 'type_mismatch', /a whole number here; this is a string/],
    ],
    [
      'a literal of another kind',
      { clips: ['x'], size: 5 },
      '/size',
      ['error', 'type_mismatch', /an object here; this is 5/],
    ],
    [
      'a value below $literal',
      { clips: { $literal: ['{{', 7] } },
      '/clips/$literal/1',
      ['error', 'type_mismatch', /a string here; this is 7/],
    ],
  ];

  it.each(inputs)('%s', (_, input, pointer, told) => {
    const findings = into(input);
    expect(findings).toEqual(told === null ? [] : show([told]));
    if (told !== null) expect(findings[0]?.pointer).toBe(`/steps/1/input${pointer}`);
  });

  it('names the part of an object that does not fit', () => {
    const own = { input: object({ part: object({ name: count }) }) };
    expect(into({ part: '{{ steps.a.output.parts[0] ?? job.x }}' }, own)).toEqual([]);
    expect(into({ part: '{{ steps.a.output.parts | first }}' }, own)).toEqual(
      show([
        ['warning', 'path_optional', /empty/],
        ['error', 'type_mismatch', /whose "name" is a string, not a whole number/],
      ]),
    );
  });

  it('warns when nothing but an empty list fits', () => {
    const own = { input: object({ counts: { type: 'array', items: count } }) };
    expect(into({ counts: '{{ steps.a.output.parts[*].name }}' }, own)).toEqual(
      show([['warning', 'type_mismatch', /nothing but an empty list/]]),
    );
  });

  it('refuses only what every spec of the capability refuses', () => {
    const [one, two] = [{ input: object({ a: text }) }, { input: object({ b: text }) }];
    const told = (input: Json) =>
      checkDefinition(
        aDefinition({ steps: [aStep({ capability: 'mix', input: input as JsonObject })] }),
        someFacts({ mix: [one, two] }),
      ).map(({ code }) => code);
    expect([told({ a: 'x' }), told({ b: 'x' }), told({ c: 'x' })]).toEqual([[], [], ['property_unknown']]);
  });
});
