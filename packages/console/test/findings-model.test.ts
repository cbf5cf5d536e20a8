import type { Finding } from '@capstan/core/contracts/pipeline-answers';
import { expect, test } from 'vitest';
import {
  type FoundIn,
  joinFindings,
  type ServerAnswer,
  toShownFindings,
} from '../src/pages/edit/findings-model.ts';
import { checkText } from '../src/worker/check-text.ts';

function aFinding(message: string): Finding {
  return { severity: 'error', code: 'capability_unknown', pointer: '/steps/0/capability', line: 3, message };
}

const page: FoundIn = { text: 'a', findings: [aFinding('of the page')] };
const silence: ServerAnswer = { found: null, hasFailed: false };

test('findings of the server for this very text replace those of the page', () => {
  const found = { text: 'a', findings: [aFinding('of the server')] };
  expect(joinFindings(page, true, { found, hasFailed: false })).toEqual({
    findings: found.findings,
    verdict: 'server',
  });
});

test('findings of the server for another text are ignored', () => {
  const found = { text: 'b', findings: [aFinding('of the server')] };
  expect(joinFindings(page, true, { found, hasFailed: false })).toEqual({
    findings: page.findings,
    verdict: 'asking',
  });
});

test.each([
  [true, silence, 'asking'],
  [true, { found: null, hasFailed: true }, 'unreachable'],
  [false, silence, 'page'],
] as const)('readable: %s, answered: %o: %s', (isReadable, answer, verdict) => {
  expect(joinFindings(page, isReadable, answer).verdict).toBe(verdict);
});

test.each([
  ['pipeline: a\nversion: "1"\nsteps:\n  - id: one\n    capability: trim\n', true],
  ['pipeline: a\nversion: "1"\nsteps:\n  - id: one\n    capabilitx: trim\n', true],
  ['pipeline: [a\nsteps: {', false],
  ['', false],
])('%j is readable: %s', (text, isReadable) => {
  expect(checkText(text, {}).isReadable).toBe(isReadable);
});

test('a text that was not read yet is not called sound', () => {
  expect(joinFindings({ text: '', findings: [] }, false, { found: null, hasFailed: false })).toEqual({
    findings: [],
    verdict: 'nobody',
  });
});

test('two equal findings are two rows, so none of them outlives its text', () => {
  const nested = aFinding('Nested mappings are not allowed in compact mappings');
  const keys = toShownFindings([nested, nested]).map(({ key }) => key);
  expect(new Set(keys).size).toBe(2);
});
