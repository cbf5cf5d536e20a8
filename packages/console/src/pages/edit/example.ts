import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import { parse, stringify } from 'yaml';
import { createExample } from '../../form/schema-model.ts';

/**
 * The editor's initial text: it runs with mocks without a registered instance, and unchanged on the sample
 * capabilities.
 */
export const examplePipeline = `# A pipeline is a graph of steps; a step begins as soon as what it mentions is done.
pipeline: hello-reel
version: "1.0"
description: Joins clips, takes pictures for the cover and asks a person before it is published
job_schema:
  type: object
  required: [clips, moments]
  properties:
    clips:
      type: array
      minItems: 1
      items:
        type: object
        required: [media_store_path]
        properties:
          media_store_path: { type: string, pattern: "^media://" }
    moments: { type: array, items: { type: number }, default: [0, 500] }
budget_ceiling_usd: 1
steps:
  - id: join
    capability: concat
    input:
      clips: "{{ job.clips }}"
      output_path: "media://{{ run.job_id }}/reel.mp4"
  - id: covers
    capability: thumbnail
    for_each:
      items: "{{ job.moments }}"
    input:
      video: { media_store_path: "{{ steps.join.output.output_path }}" }
      at_ms: "{{ item }}"
      output_path: "media://{{ run.job_id }}/cover-{{ index }}.jpg"
  - id: publish
    depends_on: [covers]
    review:
      title: May it be published?
output:
  video: "{{ steps.join.output.output_path }}"
  covers: "{{ steps.covers.output[*].output_path }}"
`;

export const exampleMocks = `# What capabilities answer, and how long they take. Time is virtual.
job:
  clips:
    - { media_store_path: media://demo/a.mp4 }
    - { media_store_path: media://demo/b.mp4 }
  moments: [0, 500, 1000]
capabilities:
  concat:
    cost_model: { type: per_second, rate_usd: 0.01 }
    replies:
      - { times: 1, error: { status: 503, message: try later } }
      - { delay: 8s, output: { output_path: "{{ input.output_path }}", duration_ms: 5000 } }
  thumbnail:
    max_concurrency: 2
    replies:
      - { times: 1, lost: true }
      - { delay: 1s, output: { output_path: "{{ input.output_path }}" } }
reviews:
  publish:
    - { after: 30s, action: output, output: { approved: true } }
`;

const ofExample = JSON.stringify((parse(examplePipeline) as PipelineDefinition).job_schema);

/** The example has mocks of its own, which fit only jobs of its schema. */
export function mocksOf(definition: PipelineDefinition): string {
  const isExample = JSON.stringify(definition.job_schema) === ofExample;
  return isExample ? exampleMocks : beginMocks(definition);
}

/** An example of its job; capabilities answer from their schemas. */
export function beginMocks({ job_schema = {} }: PipelineDefinition): string {
  const job = stringify({ job: createExample(job_schema, job_schema) });
  return `# What capabilities answer. One that is not mocked answers what its live schema asks for.
${job}capabilities: {}
`;
}
