/** The examples of the reference page (scripts/docs/expressions-page.ts); examples.test.ts runs each of them. */
import type { Json } from '../../src/contracts/primitives.ts';
import type { ExpressionScope, SkillScope } from '../../src/expression/evaluation.ts';
import { type FilterName, filterNames, type SkillFilterName } from '../../src/expression/filters.ts';

export interface Example {
  readonly template: Json;
  readonly value: Json;
}

export interface BrokenExample {
  readonly template: Json;
  /** `submission`: refused with the definition. `run`: the step fails. */
  readonly found: 'submission' | 'run';
  readonly error: string;
}

export const exampleScope: ExpressionScope = {
  job: {
    title: 'Day one',
    results: [{ path: 'a.mp4' }, null],
    take: 3,
    draft: false,
    rate: '1.5',
    public: 'true',
    note: null,
    tags: ['sea', 'sun'],
    grid: [[3, 1], [2]],
    at: '2026-01-31T08:00:00Z',
    clips: [
      { path: 'media://job_1/in/a.mp4', ms: 2000 },
      { path: 'media://job_1/in/b.mp4', ms: 3000 },
    ],
  },
  steps: {
    join: { output: { output_path: 'media://job_1/all.mp4' }, status: 'succeeded', cost_usd: 0.25 },
  },
  run: { id: 'run_1', job_id: 'job_1', attempt: 1, pipeline: 'reel', version: '1.0' },
};

/** Inside `for_each` over `job.clips`, at its second item. */
export const itemScope: ExpressionScope = {
  ...exampleScope,
  item: { path: 'media://job_1/in/b.mp4', ms: 3000 },
  index: 1,
};

export const filterExamples: Record<FilterName, Example> = {
  json: { template: 'tags: {{ job.tags | json }}', value: 'tags: ["sea","sun"]' },
  string: { template: '{{ job.take | string }}', value: '3' },
  number: { template: '{{ job.rate | number }}', value: 1.5 },
  bool: { template: '{{ job.public | bool }}', value: true },
  length: { template: '{{ job.clips | length }}', value: 2 },
  first: { template: '{{ job.tags | first }}', value: 'sea' },
  last: { template: '{{ job.tags | last }}', value: 'sun' },
  join: { template: '{{ job.tags | join(", ") }}', value: 'sea, sun' },
  basename: { template: '{{ job.clips[0].path | basename }}', value: 'a.mp4' },
  tokens: { template: '{{ job.title | tokens }}', value: 7 },
  default: { template: '{{ job.subtitle | default("none") }}', value: 'none' },
  map: { template: '{{ job.clips | map("ms") }}', value: [2000, 3000] },
  where: {
    template: '{{ job.clips | where("ms" > 2500) | map("path") }}',
    value: ['media://job_1/in/b.mp4'],
  },
  concat: { template: '{{ job.tags | concat(job.results[*].path) }}', value: ['sea', 'sun', 'a.mp4', null] },
  slice: { template: '{{ job.title | slice(-3, 8) }}', value: 'one' },
  unique: { template: '{{ job.tags | concat(job.tags) | unique }}', value: ['sea', 'sun'] },
  flatten: { template: '{{ job.grid | flatten }}', value: [3, 1, 2] },
  at: { template: '{{ job.tags | at(job.take - 2) }}', value: 'sun' },
  range: { template: '{{ job.take | range(1) }}', value: [1, 2, 3] },
  combinations: {
    template: '{{ {"tag": job.tags, "take": [job.take]} | combinations }}',
    value: [
      { tag: 'sea', take: 3 },
      { tag: 'sun', take: 3 },
    ],
  },
  sort: { template: '{{ job.grid | flatten | sort }}', value: [1, 2, 3] },
  sort_by: {
    template: '{{ job.clips | sort_by("path") | map("ms") }}',
    value: [2000, 3000],
  },
  reverse: { template: '{{ job.tags | reverse }}', value: ['sun', 'sea'] },
  sum: { template: '{{ job.clips | map("ms") | sum }}', value: 5000 },
  min: { template: '{{ job.clips | map("ms") | min }}', value: 2000 },
  max: { template: '{{ job.tags | max }}', value: 'sun' },
  keys: { template: '{{ job.clips[0] | keys }}', value: ['path', 'ms'] },
  values: { template: '{{ steps.join.output | values }}', value: ['media://job_1/all.mp4'] },
  lower: { template: '{{ job.title | lower }}', value: 'day one' },
  upper: { template: '{{ job.title | upper }}', value: 'DAY ONE' },
  trim: { template: '{{ "  sea " | trim }}', value: 'sea' },
  split: { template: '{{ job.title | split(" ") }}', value: ['Day', 'one'] },
  replace: { template: '{{ job.title | replace(" ", "-") }}', value: 'Day-one' },
  parse_json: { template: '{{ job.rate | parse_json }}', value: 1.5 },
  round: { template: '{{ (job.clips[1].ms / 7) | round(1) }}', value: 428.6 },
  floor: { template: '{{ 2.7 | floor }}', value: 2 },
  ceil: { template: '{{ 2.1 | ceil }}', value: 3 },
  abs: { template: '{{ -2.5 | abs }}', value: 2.5 },
  timestamp: { template: '{{ job.at | timestamp }}', value: 1_769_846_400_000 },
  format_date: { template: '{{ job.at | format_date("DD.MM.YYYY HH:mm") }}', value: '31.01.2026 08:00' },
  add_duration: { template: '{{ job.at | add_duration("1d") }}', value: '2026-02-01T08:00:00.000Z' },
};

export const examples: readonly Example[] = [
  { template: '{{ job.take }}', value: 3 },
  { template: 'take {{ job.take }} of {{ job.title }}', value: 'take 3 of Day one' },
  {
    template: '{{ job.clips[*].path }}',
    value: ['media://job_1/in/a.mp4', 'media://job_1/in/b.mp4'],
  },
  { template: '{{ job.results[*].path }}', value: ['a.mp4', null] },
  { template: '{{ job["title"] }}', value: 'Day one' },
  { template: '{{ job.clips[job.take - 2].path }}', value: 'media://job_1/in/b.mp4' },
  { template: '{{ job.subtitle ?? job.title }}', value: 'Day one' },
  { template: '{{ job.note ?? "none" }}', value: 'none' },
  { template: '{{ job.extras ?? [] }}', value: [] },
  { template: '{{ [job.title, job.take + 1] }}', value: ['Day one', 4] },
  {
    template: '{{ {"title": job.title, "size": {"w": 640}} }}',
    value: { title: 'Day one', size: { w: 640 } },
  },
  { template: '{{ [job.title, job.subtitle] ?? ["untitled"] }}', value: ['untitled'] },
  { template: '{{ ( job.take > 2 && !job.draft ) }}', value: true },
  { template: '{{ ( "sea" in job.tags ) }}', value: true },
  { template: '{{ ( job.clips[0] == job.clips[1] ) }}', value: false },
  { template: '{{ ( 3 > 2 == true ) }}', value: true },
  { template: '{{ ( job.draft && job.subtitle == "x" ) }}', value: false },
  { template: '{{ job.take * 2 + 1 }}', value: 7 },
  { template: '{{ (job.clips[0].ms + job.clips[1].ms) / 1000 - job.take }}', value: 2 },
  { template: '{{ job.bonus * 2 ?? 0 }}', value: 0 },
  { template: '{{ (job.bonus ?? 1) * 2 }}', value: 2 },
  { template: '{{ ( job.take + 1 > 3 ) }}', value: true },
  { template: '{{ "\\u00e9" }}', value: 'é' },
  { template: "{{ '\\u00e9' }}", value: '\\u00e9' },
  { template: 'media://{{ run.job_id }}/cover.jpg', value: 'media://job_1/cover.jpg' },
  { template: "{{ '{{' }} as it is }}", value: '{{ as it is }}' },
  { template: { $literal: '{{ not an expression }}' }, value: '{{ not an expression }}' },
];

export const itemExamples: readonly Example[] = [
  { template: '{{ item.path | basename }}', value: 'b.mp4' },
  { template: 'clip {{ index }} of {{ job.clips | length }}', value: 'clip 1 of 2' },
];

/** `when` values. */
export const conditionExamples: readonly Example[] = [
  { template: 'job.take > 2 && !job.draft', value: true },
  { template: 'steps.join.status == "succeeded"', value: true },
  { template: '{{ job.public | bool }}', value: true },
  { template: '(job.subtitle ?? "") != ""', value: false },
  { template: 'job.rate in ["1.5", "2"]', value: true },
];

export const brokenExamples: readonly BrokenExample[] = [
  {
    template: '{{ job.take == 3 }}',
    found: 'submission',
    error: '== needs parentheses',
  },
  {
    template: '{{ (job.clips)[0] }}',
    found: 'submission',
    error: 'only an operator or a filter may follow a closing parenthesis',
  },
  {
    template: '{{ job.tags[-1] }}',
    found: 'submission',
    error: '-1 is no index; an index is 0, 1, 2, ...',
  },
  {
    template: '{{ title }}',
    found: 'submission',
    error: '"title" is no root; there are job, steps, run, item, index, round, secrets',
  },
  {
    template: '{{ job.tags | size }}',
    found: 'submission',
    error: `"size" is no filter; there are ${filterNames.join(', ')}`,
  },
  {
    template: '{{ job.take -1 }}',
    found: 'submission',
    error: '- between two values needs white space on both sides',
  },
  {
    template: '{{ job.title }',
    found: 'submission',
    error: 'expected }}, an operator or a filter, found "}"',
  },
  {
    template: '{{ job.__proto__ }}',
    found: 'submission',
    error: 'the name __proto__ is not allowed',
  },
  {
    template: '{{ job.subtitle }}',
    found: 'run',
    error:
      'job.subtitle does not exist: job is an object with the keys title, results, take, draft, rate, public, note, tags, grid, at, clips',
  },
  {
    template: 'tags: {{ job.tags }}',
    found: 'run',
    error: 'text takes strings, numbers and booleans, not a list of 2; use ?? "" or | json',
  },
  {
    template: '{{ job.clips["0"] ?? "none" }}',
    found: 'run',
    error: '["0"] does not apply to job.clips, which is a list of 2',
  },
  {
    template: '{{ ( job.take && true ) }}',
    found: 'run',
    error: '&& takes booleans, not a number',
  },
  {
    template: '{{ ( job.rate < 2 ) }}',
    found: 'run',
    error: '< orders two numbers or two strings, not a string and a number',
  },
  {
    template: '{{ job.rate * 2 }}',
    found: 'run',
    error: '* takes numbers, not a string',
  },
  {
    template: '{{ job.take / 0 }}',
    found: 'run',
    error: 'a number is divided by 0',
  },
  {
    template: '{{ ( 1 < 2 < 3 ) }}',
    found: 'run',
    error: '< orders two numbers or two strings, not a boolean and a number',
  },
];

/** `when` values. */
export const brokenConditions: readonly BrokenExample[] = [
  {
    template: '{{ job.draft }} && true',
    found: 'submission',
    error: 'one {{ }} holds the whole condition; nothing follows it',
  },
  {
    template: 'job.take >',
    found: 'submission',
    error: 'the condition ends where a path, a value or ( was expected',
  },
  {
    template: 'job.title',
    found: 'run',
    error: 'a boolean is needed, not a string; compare instead',
  },
];

export const skillScope: SkillScope = {
  input: { width: '1919.5', codec: 'H264', note: null },
  match: { g1: '4096' },
};

export const skillFilterExamples: Record<SkillFilterName, Example> = {
  int: { template: '{{ match.g1 | int }}', value: 4096 },
  even: { template: '{{ input.width | even }}', value: 1918 },
};
