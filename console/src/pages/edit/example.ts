/** What the editor begins with when there is nothing yet: it runs with mocks, with nothing registered. */
export const examplePipeline = `# A pipeline is a graph of steps; a step begins as soon as what it mentions is done.
pipeline: hello-reel
version: "1.0"
description: Cuts each clip, joins them and asks a person before it is published
job_schema:
  type: object
  required: [clips]
  properties:
    clips:
      type: array
      items: { type: string }
    title: { type: string, default: "My reel" }
budget_ceiling_usd: 1
steps:
  - id: trim
    capability: trim
    for_each:
      items: "{{ job.clips }}"
    input:
      clip: "{{ item }}"
  - id: join
    capability: join
    input:
      parts: "{{ steps.trim.output }}"
      title: "{{ job.title ?? 'My reel' }}"
  - id: cover
    capability: cover
    input:
      video: "{{ steps.join.output.video }}"
  - id: publish
    review:
      title: May it be published?
    depends_on: [join, cover]
output:
  video: "{{ steps.join.output.video }}"
  cover: "{{ steps.cover.output.image }}"
`;

export const exampleMocks = `# What capabilities answer, and how long they take. Time is virtual.
job:
  clips: [media://demo/a.mp4, media://demo/b.mp4, media://demo/c.mp4]
  title: My reel
capabilities:
  trim:
    max_concurrency: 2
    replies:
      - { times: 1, lost: true }
      - { delay: 2s, output: "{{ input.clip }}" }
  join:
    cost_model: { type: per_second, rate_usd: 0.01 }
    replies:
      - { delay: 8s, output: { video: media://demo/reel.mp4 } }
  cover:
    replies:
      - { delay: 1s, output: { image: media://demo/cover.png } }
reviews:
  publish:
    - { after: 30s, action: output, output: { approved: true } }
`;

export const emptyMocks = `# What capabilities answer. One that is not mocked answers what its live schema asks for.
job: {}
capabilities: {}
`;
