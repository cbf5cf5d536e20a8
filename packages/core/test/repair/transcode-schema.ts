import type { JsonObject } from '../../src/contracts/primitives.ts';

/** The input of a foreign capability: closed, with enums, formats, defaults and references. */
export const transcodeInput: JsonObject = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: {
    source: { $ref: '#/$defs/reference' },
    codec: { enum: ['h264', 'h265', 'vp9', 'av1'] },
    profile: { type: 'string', enum: ['main', 'high'], default: 'main' },
    preset: { type: 'string', enum: ['fast', 'medium', 'slow', 'fastest'] },
    crf: { type: 'integer', minimum: 0, maximum: 51 },
    height: { type: 'integer', minimum: 16, multipleOf: 8 },
    speed: { type: 'number', exclusiveMinimum: 0 },
    two_pass: { type: 'boolean' },
    sample_rate: { type: 'integer' },
    tags: { type: 'array', items: { type: 'string' } },
    label: { type: 'string' },
    priority: { type: 'integer' },
    not_before: { type: 'string', format: 'date-time' },
    output_path: { $ref: '#/$defs/reference' },
  },
  required: ['source', 'codec', 'profile', 'output_path'],
  additionalProperties: false,
  $defs: { reference: { type: 'string', pattern: '^media://' } },
};
