/** The form of a hook: what it sends, what it keeps, and where faults are shown. */
import { HookRequest, HookSettings } from '@capstan/core/contracts/hook';
import { expect, test } from 'vitest';
import { readChoice, writeChoice } from '../src/form/target-model.ts';
import {
  areAllShown,
  faultsByField,
  readJob,
  settingsOf,
  toHookRequest,
  toHookSettings,
  writeJob,
} from '../src/hook/form-model.ts';

function fields(values: Readonly<Record<string, string>>): (name: string) => string {
  return (name) => values[name] ?? '';
}

test.each([
  ['', '{{ body }}'],
  [' {{ body.job }} ', '{{ body.job }}'],
  ['{"commit": "{{ body.after }}"}', { commit: '{{ body.after }}' }],
  ['{ }', {}],
  ['{"commit": ', null],
  ['{"a": 1} {{ body }}', null],
] as const)('the job %j is read as %j', (text, job) => {
  expect(readJob(text)).toEqual(job);
  if (job !== null) expect(readJob(writeJob(job))).toEqual(job);
});

test.each([
  ['', {}],
  ['alias stable', { alias: 'stable' }],
  ['version 1.0 beta', { version: '1.0 beta' }],
])('the choice %j is %j', (text, choice) => {
  expect(readChoice(text)).toEqual(choice);
  expect(writeChoice(choice)).toBe(text);
});

test('empty fields are left out, so that their defaults hold', () => {
  const field = fields({ name: ' on-push ', job: '', filter: ' ', key: '' });
  const made = toHookRequest({ field, pipeline: 'reel', signature: 'github' });
  expect(made).toEqual({
    name: 'on-push',
    pipeline: 'reel',
    signature: 'github',
    job: '{{ body }}',
    enabled: true,
  });
  expect(HookRequest.safeParse(made).success).toBe(true);
  expect(toHookRequest({ field: fields({ job: '{' }), pipeline: 'reel', signature: 'github' })).toBe(null);
});

test.each([
  { enabled: false },
  { enabled: true, priority: 'batch', budget_ceiling_usd: 0.5, labels: { team: 'ads' } },
] as const)('settings that the form does not ask for stay: %j', (former) => {
  const field = fields({ choice: 'alias stable', job: '{"a": 1}', filter: 'body.a', key: '{{ body.id }}' });
  const settings = toHookSettings({ field, pipeline: 'reel', signature: 'bearer', former });
  expect(settings).toEqual({
    ...former,
    pipeline: 'reel',
    alias: 'stable',
    signature: 'bearer',
    job: { a: 1 },
    filter: 'body.a',
    key: '{{ body.id }}',
  });
  const shown = { ...(settings as HookSettings), hook_id: 'hook_1', url: '/v1/hooks/x' };
  expect(settingsOf(shown)).toEqual(settings);
  expect(HookSettings.safeParse(settingsOf(shown)).success).toBe(true);
});

function fault(pointer: string, message: string) {
  return { pointer, code: 'x', message };
}

test('the first fault of each field is shown at it, with its place within', () => {
  const errors = [
    fault('/job/commit/0', 'bodi is unknown'),
    fault('/job', 'second'),
    fault('/alias', 'no alias stable'),
    fault('/secret', 'too short'),
  ];
  expect(faultsByField(errors)).toEqual({
    job: 'commit/0: bodi is unknown',
    choice: 'no alias stable',
    secret: 'too short',
  });
  expect(areAllShown(errors)).toBe(true);
  expect(areAllShown([...errors, fault('/labels', 'x')])).toBe(false);
  expect(areAllShown([])).toBe(false);
});
