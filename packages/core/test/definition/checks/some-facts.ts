import { expect } from 'vitest';
import type { JsonObject } from '../../../src/contracts/primitives.ts';
import type { CapabilityForm, DefinitionFacts } from '../../../src/definition/checks/finding.ts';
import { typeOfSchema } from '../../../src/schema-types/schema-type.ts';

export interface Schemas {
  readonly input?: JsonObject;
  readonly output?: JsonObject;
}

function aForm({ input = {}, output = {} }: Schemas): CapabilityForm {
  return {
    digest: JSON.stringify([input, output]),
    input: typeOfSchema(input),
    output: typeOfSchema(output),
    findInputFaults: () => [],
    isDeterministic: false,
  };
}

/** Facts with these capabilities, each with a spec, or several of which any may be met. */
export function someFacts(
  capabilities: Readonly<Record<string, Schemas | readonly Schemas[]>> = {},
): DefinitionFacts {
  const forms = new Map(
    Object.entries(capabilities).map(([name, schemas]) => [name, [schemas].flat().map(aForm)]),
  );
  return {
    knownCapabilities: null,
    strict: false,
    specsOf: ({ capability = '' }) => forms.get(capability) ?? [],
  };
}

export const text = { type: 'string' };
export const count = { type: 'integer' };

export function object(properties: JsonObject, rest: JsonObject = {}): JsonObject {
  return {
    type: 'object',
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
    ...rest,
  };
}

/** Joins clips; a preview is not always there. */
const join: Schemas = {
  output: {
    type: 'object',
    properties: {
      path: text,
      frames: count,
      preview: { type: 'object', properties: { at: count }, required: ['at'] },
      parts: { type: 'array', items: object({ name: text, tags: { type: 'array', items: text } }) },
      pair: { type: 'array', prefixItems: [text, count], items: false, minItems: 2 },
      mode: { enum: ['fast', 'slow'] },
      label: { type: ['string', 'null'] },
      byName: { type: 'object', additionalProperties: count },
    },
    required: ['path', 'frames', 'parts', 'pair', 'mode', 'label', 'byName'],
    additionalProperties: false,
  },
};

const open: Schemas = { output: { type: 'object', properties: { path: text }, required: ['path'] } };

export const capabilities = { join, open };

export type Told = [severity: string, code: string, message: RegExp, suggestion?: RegExp];

/** Findings as `expect` takes them. */
export function show(told: readonly Told[]) {
  return told.map(([severity, code, message, suggestion]) =>
    expect.objectContaining({
      severity,
      code,
      message: expect.stringMatching(message),
      ...(suggestion === undefined ? {} : { suggestion: expect.stringMatching(suggestion) }),
    }),
  );
}
