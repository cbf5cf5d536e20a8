import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { confidenceRules, lowerBound } from '@capstan/core/skills/confidence';
import { passGate } from '@capstan/core/skills/derive-template';
import { matchPatterns, readPatterns } from '@capstan/core/skills/pattern';
import { applyTemplate, parseTemplate } from '@capstan/core/skills/template';
import { expect, test } from 'vitest';
import { listCodeBlocks, readDocument } from './documents.ts';

interface Example {
  readonly error?: string;
  readonly pattern?: string;
  readonly input: JsonObject;
  readonly template: Json;
  readonly becomes: JsonObject;
  readonly leaves: JsonObject;
}

const page = 'docs/escalation-and-skills.md';
const examples = listCodeBlocks(page)
  .filter(({ mark }) => mark === 'template')
  .map(({ text }) => JSON.parse(text) as Example);

test('there are examples of templates', () => {
  expect(examples.length).toBeGreaterThanOrEqual(4);
});

test.each(examples)('$template does what the guide describes', (example) => {
  const { pattern, error = '', input, becomes, leaves } = example;
  const reading = readPatterns(pattern === undefined ? [] : [pattern]);
  const match = (reading.ok && matchPatterns(reading.patterns, error)) || {};
  const text = JSON.stringify(example.template);
  const gate = { template: text, original: input, corrected: becomes, match, isValid: true };
  expect(passGate(gate)).toEqual({ ok: true });
  const parsing = parseTemplate(text);
  if (!parsing.ok) throw new Error(parsing.message);
  expect(applyTemplate(parsing.template, { input: leaves, match }).ok).toBe(false);
});

test('the guide gives the bounds as they are', () => {
  const shown = (success_count: number, failure_count: number): string =>
    lowerBound({ success_count, failure_count }).toFixed(2);
  expect(readDocument(page)).toContain(`1 of 1 (${shown(1, 0)}) does not outrank 45 of 50 (${shown(45, 5)})`);
  expect(readDocument(page)).toContain(`from a bound of ${confidenceRules.instruction} on`);
});
