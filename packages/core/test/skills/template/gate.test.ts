import { describe, expect, it } from 'vitest';
import { countProcessorMs } from '../../../../../test/support/processor-time.ts';
import type { Json } from '../../../src/contracts/primitives.ts';
import { type GateInput, passGate } from '../../../src/skills/derive-template.ts';
import { findProtectedChange } from '../../../src/skills/protected.ts';
import { writeTemplate } from '../../../src/skills/write-template.ts';

const original = {
  rate: '44.1k',
  clip: 'media://job_1/a.mp4',
  nested: { output_path: 'media://job_1/out.mp4' },
  note: 'fetched from https://files.example:8080/a',
};
const corrected = { ...original, rate: 44100 };

function aGate(gate: Partial<GateInput> = {}): GateInput {
  return {
    template: writeTemplate(original, corrected) ?? '',
    original,
    corrected,
    match: {},
    isValid: true,
    ...gate,
  };
}

describe('passGate', () => {
  it('accepts a template that gives exactly the input that worked', () => {
    expect(passGate(aGate())).toEqual({ ok: true });
  });

  it.each<[string, Partial<GateInput>, RegExp]>([
    ['a template that is none', { template: '[' }, /has to be JSON/],
    ['literal text', { template: 'use 44100' }, /only a JSON Patch/],
    ['a merge patch', { template: '{"rate":44100}' }, /is no JSON Patch/],
    ['hidden characters', { template: '[{"op":"add","path":"/\u200b","value":1}]' }, /U\+200B/],
    [
      'an unguarded literal',
      { template: '[{"op":"replace","path":"/rate","value":44100}]' },
      /replace of "\/rate" needs a test/,
    ],
    [
      'an unguarded remove',
      { template: '[{"op":"remove","path":"/rate"}]' },
      /remove of "\/rate" needs a test/,
    ],
    [
      'a guard that is always true',
      {
        template:
          '[{"op":"test","path":"/rate","value":"{{ input.rate }}"},{"op":"replace","path":"/rate","value":44100}]',
      },
      /needs a test/,
    ],
    [
      'a guard whose item has moved away',
      {
        original: { l: [1, 1] },
        corrected: { l: [] },
        template:
          '[{"op":"test","path":"/l/0","value":1},{"op":"remove","path":"/l/0"},{"op":"remove","path":"/l/0"}]',
      },
      /needs a test/,
    ],
    ['another result', { corrected: { ...corrected, more: 1 } }, /does not give the input that worked/],
    ['an invalid result', { isValid: false }, /not valid/],
    ['a template that does not apply', { original: { ...original, rate: '48k' } }, /another value/],
    [
      'a protected change',
      {
        corrected: { ...original, clip: 'x' },
        template: writeTemplate(original, { ...original, clip: 'x' }) ?? '',
      },
      /"\/clip" is a URL or media reference/,
    ],
  ])('refuses %s', (_, gate, reason) => {
    expect(passGate(aGate(gate))).toEqual({ ok: false, reason: expect.stringMatching(reason) });
  });
});

describe('findProtectedChange', () => {
  it.each<[string, Json, string]>([
    ['output_path', { ...original, nested: { output_path: 'x' } }, '/nested/output_path'],
    ['a removed output_path', { ...original, nested: {} }, '/nested/output_path'],
    ['an output_path that comes', { ...original, output_path: 'x' }, '/output_path'],
    ['a path in an output_path', { ...original, output_path: { x: [1] } }, '/output_path/x/0'],
    ['a media reference', { ...original, clip: 'media://job_1/b.mp4' }, '/clip'],
    ['a text that becomes a URL', { ...original, rate: 'https://files.example:8080/b' }, '/rate'],
    ['a URL in a list', { ...original, more: ['HTTPS://files.example:8080/b'] }, '/more/0'],
    ['a URL without slashes', { ...original, rate: 'http:evil.example' }, '/rate'],
    ['a URL without a scheme', { ...original, rate: '//evil.example' }, '/rate'],
    ['a new host in a text', { ...original, note: 'see https://evil.example/a' }, '/note'],
    [
      'a host behind a user name',
      { ...original, note: 'x https://files.example:8080@evil.example/a' },
      '/note',
    ],
    [
      'a host before a backslash',
      { ...original, note: 'x https://evil.example\\@files.example:8080/a' },
      '/note',
    ],
    ['another port', { ...original, note: 'see https://files.example:22/a' }, '/note'],
    ['an address', { ...original, rate: 'at 169.254.169.254' }, '/rate'],
    ['a name with a port', { ...original, rate: 'evil.example:443' }, '/rate'],
    ['localhost with a port', { ...original, rate: 'localhost:5432' }, '/rate'],
    ['a host in a key', { ...original, 'https://evil.example/': 1 }, '/https:~1~1evil.example~1'],
  ])('finds %s', (_, changed, pointer) => {
    expect(findProtectedChange(original, changed)).toEqual({ pointer, reason: expect.any(String) });
  });

  it.each<[string, Json]>([
    ['numbers and texts', { ...corrected, size: { w: 1.5 }, name: 'clip.mp4', at: '00:01:02.5' }],
    ['text around a known host', { ...original, note: 'moved from https://FILES.example:8080/b' }],
    ['the order of keys', Object.fromEntries(Object.entries(original).reverse())],
  ])('allows to change %s', (_, changed) => {
    expect(findProtectedChange(original, changed)).toBeNull();
  });

  it('reads long hostile texts in linear time', () => {
    const spentMs = countProcessorMs();
    for (const piece of ['/', '\\', 'a.', 'a-', '1.', 'http:', '@', ':1', ' ']) {
      findProtectedChange({}, { a: piece.repeat(100_000) });
    }
    expect(spentMs()).toBeLessThan(5_000);
  });
});
