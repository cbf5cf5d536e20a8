/**
 * How long it takes to check a definition of 1,000 steps against the schemas of what they call, and how long with reading
 * its text. Exits with 1 when the median of the checks is above the bar.
 */
import type { CapabilitySpec } from '../../src/contracts/capability.ts';
import { type Finding, PipelineDefinition } from '../../src/contracts/pipeline.ts';
import type { JsonObject } from '../../src/contracts/primitives.ts';
import { checkDefinition } from '../../src/core/definition/checks/check-definition.ts';
import type { DefinitionFacts } from '../../src/core/definition/checks/definition-facts.ts';
import type { DefinitionFinding } from '../../src/core/definition/checks/finding.ts';
import { createInputForms } from '../../src/definitions/input-forms.ts';
import { readDefinition } from '../../src/definitions/read-definition.ts';

const barMs = 50;
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

interface Time {
  readonly wallMs: number;
  readonly cpuMs: number;
}

function measure(work: () => readonly Finding[] | readonly DefinitionFinding[]): Time {
  const [wall, cpu] = [performance.now(), process.cpuUsage()];
  const findings = work();
  const { user, system } = process.cpuUsage(cpu);
  const error = findings.find(({ severity }) => severity === 'error');
  if (error !== undefined) throw new Error(`the definition has an error: ${JSON.stringify(error)}`);
  return { wallMs: performance.now() - wall, cpuMs: (user + system) / 1_000 };
}

function show(ms: number): string {
  return `${ms.toFixed(1)} ms`;
}

/** @returns the median in ms */
function report(name: string, work: () => readonly Finding[] | readonly DefinitionFinding[]): number {
  const first = measure(work);
  for (let round = 0; round < warmRounds; round++) measure(work);
  const times = Array.from({ length: rounds }, () => measure(work));
  const [wall, cpu] = (['wallMs', 'cpuMs'] as const).map((of) =>
    times.map((time) => time[of]).sort((a, b) => a - b),
  );
  const middle = Math.floor(rounds / 2);
  const p50 = wall?.[middle] ?? 0;
  console.log(
    `${name}: p50 ${show(p50)} (${show(cpu?.[middle] ?? 0)} of processor time), min ${show(wall?.[0] ?? 0)}, ` +
      `max ${show(wall?.at(-1) ?? 0)}, the first ${show(first.wallMs)}`,
  );
  return p50;
}

console.log(
  `${stepCount} steps, ${capabilityCount} capabilities, ${text.length} characters; the bar is ${barMs} ms`,
);
const definition = PipelineDefinition.parse(JSON.parse(text));
const p50 = report('checks', () => checkDefinition(definition, facts));
report(
  'from the text to the findings',
  () => readDefinition({ text, contentType: 'application/json' }, facts).findings,
);
process.exitCode = p50 > barMs ? 1 : 0;
