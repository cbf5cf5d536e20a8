/**
 * How long it takes to check a definition of 1,000 steps against the schemas of what they call, and how long with reading
 * its text.
 */
import type { CapabilitySpec } from '@capstan/core/contracts/capability';
import { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Finding } from '@capstan/core/contracts/pipeline-answers';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { checkDefinition } from '@capstan/core/definition/checks/check-definition';
import type { DefinitionFacts, DefinitionFinding } from '@capstan/core/definition/checks/finding';
import { createInputForms } from '@capstan/core/definitions/input-forms';
import { readDefinition } from '@capstan/core/definitions/read-definition';
import { median } from '../engine/statistics.ts';
import type { Figure } from './figure.ts';

const rounds = 40;
const warmRounds = 15;
const stepCount = 1_000;
const capabilityCount = 25;

const media: JsonObject = {
  type: 'object',
  properties: {
    media_store_path: { type: 'string', pattern: '^media://' },
    duration_ms: { type: 'integer', minimum: 0 },
    kind: { enum: ['video', 'audio', 'image'] },
  },
  required: ['media_store_path'],
  additionalProperties: false,
};

function aSpec(name: string): CapabilitySpec {
  return {
    name,
    version: '1.0.0',
    description: '',
    cost_model: { type: 'free', rate_usd: 0 },
    input: {
      type: 'object',
      properties: {
        source: { $ref: '#/$defs/media' },
        overlays: {
          type: 'array',
          items: {
            anyOf: [
              { $ref: '#/$defs/media' },
              { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
            ],
          },
        },
        quality: { enum: ['low', 'medium', 'high'] },
        speed: { type: 'number', exclusiveMinimum: 0 },
        output_path: { type: 'string', pattern: '^media://' },
      },
      required: ['source', 'output_path'],
      additionalProperties: false,
      $defs: { media },
    },
    output: {
      type: 'object',
      properties: {
        result: { $ref: '#/$defs/media' },
        parts: { type: 'array', items: { $ref: '#/$defs/media' } },
        preview: { $ref: '#/$defs/media' },
        score: { type: 'number' },
      },
      required: ['result', 'parts', 'score'],
      additionalProperties: false,
      $defs: { media },
    },
  };
}

function aStep(index: number) {
  return {
    id: `step_${index}`,
    capability: `capability_${index % capabilityCount}`,
    input:
      index < 10
        ? { source: { media_store_path: '{{ job.source }}' }, output_path: 'media://x/a.mp4' }
        : {
            source: `{{ steps.step_${index - 1}.output.result }}`,
            overlays: [
              `{{ steps.step_${index - 10}.output.preview ?? steps.step_${index - 10}.output.result }}`,
              { text: `part ${index}` },
            ],
            quality: 'high',
            speed: 1.5,
            output_path: `media://{{ run.job_id }}/${index}.mp4`,
          },
    ...(index % 10 === 0 && index > 0 ? { when: `steps.step_${index - 1}.output.score > 0.5` } : {}),
  };
}

const forms = createInputForms();
const facts: DefinitionFacts = {
  knownCapabilities: new Set(Array.from({ length: capabilityCount }, (_, n) => `capability_${n}`)),
  strict: true,
  specsOf: ({ capability = '' }) => [
    forms.ofSpec(capability) ?? forms.addSpec(capability, aSpec(capability)),
  ],
};

const text = JSON.stringify({
  pipeline: 'long',
  version: '1',
  steps: Array.from({ length: stepCount }, (_, index) => aStep(index)),
});

/** @returns milliseconds */
function measure(work: () => readonly Finding[] | readonly DefinitionFinding[]): number {
  const startedAt = performance.now();
  const findings = work();
  const ms = performance.now() - startedAt;
  const error = findings.find(({ severity }) => severity === 'error');
  if (error !== undefined) throw new Error(`the definition has an error: ${JSON.stringify(error)}`);
  return ms;
}

/** @returns the median in milliseconds, once the code is compiled and the schemas are */
function medianOf(work: () => readonly Finding[] | readonly DefinitionFinding[]): number {
  for (let round = 0; round < warmRounds; round++) measure(work);
  return median(Array.from({ length: rounds }, () => measure(work)));
}

export function measureChecks(): Figure[] {
  const definition = PipelineDefinition.parse(JSON.parse(text));
  const read = () => readDefinition({ text, contentType: 'application/json' }, facts).findings;
  return [
    {
      name: `checks of ${stepCount} steps`,
      value: medianOf(() => checkDefinition(definition, facts)),
      unit: 'ms',
      bar: { kind: '<=', limit: 50 },
    },
    { name: 'from the text to the findings', value: medianOf(read), unit: 'ms', bar: null },
  ];
}
