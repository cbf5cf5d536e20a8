/** The types of lists and objects that expressions write, and of strings whose expressions cannot be read. */
import { expect, it } from 'vitest';
import type { Json, JsonObject } from '../../../src/contracts/primitives.ts';
import { checkDefinition } from '../../../src/definition/checks/check-definition.ts';
import { aDefinition, aStep } from './a-definition.ts';
import { count, object, type Schemas, show, someFacts, type Told, text } from './some-facts.ts';

const capabilities: Record<string, Schemas> = {
  find: { output: { type: 'object', properties: { clips: { type: 'array', items: text } }, required: [] } },
  join: { input: object({ clips: { type: 'array', items: text } }) },
  size: { input: object({ at: object({ w: count }) }) },
};

/** The findings of `find`, whose clips may be missing, when a second step reads it. */
function findingsOf(over: JsonObject) {
  const steps = [aStep({ id: 'a', capability: 'find' }), aStep({ id: 'b', ...over })];
  return checkDefinition(aDefinition({ steps }), someFacts(capabilities));
}

const item = { input: { clip: '{{ item | upper }}' } };

it.each<[items: Json, told: Told[]]>([
  ['{{ steps.a.output.clips }}', [['warning', 'path_optional', /clips may be missing/, /\?\?/]]],
  ['{{ steps.a.output.clips ?? [] }}', []],
  ['{{ steps.a.output.clips | default([]) }}', []],
  ['{{ steps.a.output.clips ?? ["none"] }}', []],
  ['{{ [steps.a.output.clips | first ?? "x", "y"] }}', []],
  [
    '{{ [steps.a.output.clips] }}',
    [
      ['warning', 'path_optional', /clips may be/],
      ['error', 'operand_invalid', /upper/],
    ],
  ],
  ['{{ steps.a.output.clips ?? {} }}', []],
  ['{{ {"a": 1} }}', [['error', 'type_mismatch', /for_each.items takes a list, not an object/]]],
  ['{{ [1, 2] }}', [['error', 'operand_invalid', /upper takes a string, not 1 or 2/]]],
  ['{{ steps.a.output.clips ?? [ }}', [['error', 'expression_syntax', /expected a path/]]],
  [`{{ [${'"x",'.repeat(20_000)}"x"] }}`, [['error', 'expression_limit', /at most 65536 bytes/]]],
  ['{{ steps.a.output.clips | size }}', [['error', 'filter_unknown', /"size" is no filter/]]],
])('for_each over %s', (items, told) => {
  expect(findingsOf({ capability: 'echo', for_each: { items }, ...item })).toEqual(show(told));
});

it.each<[capability: string, input: JsonObject, told: Told[]]>([
  ['join', { clips: '{{ steps.a.output.clips ?? [] }}' }, []],
  ['join', { clips: '{{ ["a", job.title] }}' }, []],
  ['join', { clips: '{{ [1] }}' }, [['error', 'type_mismatch', /join takes a list of strings here/]]],
  ['join', { clips: '{{ ["a" }}' }, [['error', 'expression_syntax', /a comma or \]/]]],
  ['join', { clips: ['{{ job. }}', 'b'] }, [['error', 'expression_syntax', /a name after the dot/]]],
  ['size', { at: '{{ {"w": job.w} }}' }, []],
  ['size', { at: '{{ {"h": 2} }}' }, [['error', 'type_mismatch', /never has "w"/]]],
  ['size', { at: '{{ {"w": "2"} }}' }, [['error', 'type_mismatch', /whose "w" is "2", not a whole number/]]],
  ['size', { at: { w: '{{ job.w | }}' } }, [['error', 'expression_syntax', /the name of a filter/]]],
])('the input of %s: %o', (capability, input, told) => {
  expect(findingsOf({ capability, input, depends_on: ['a'] })).toEqual(show(told));
});

it.each(['concat(job.m)', 'default(job.m)', 'default([job.m])', 'default({"a": job.m})'])(
  'a chain of %s as long as a string may be is checked like a short one',
  (filter) => {
    const list = (items: JsonObject): JsonObject => ({ type: 'array', items });
    const job_schema = {
      type: 'object',
      properties: { l: list(list(list(count))), m: list(list(list(text))) },
    } as const;
    const messagesOf = (length: number) => {
      const items = `{{ job.l${` | ${filter}`.repeat(length)} }}`;
      const steps = [aStep({ for_each: { items }, input: { x: '{{ item | first | first | upper }}' } })];
      const found = checkDefinition(aDefinition({ job_schema, steps }), someFacts());
      return new Set(found.map(({ message }) => message));
    };
    expect(messagesOf(2_600)).toEqual(messagesOf(2));
  },
);
