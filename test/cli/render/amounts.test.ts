import { expect, it } from 'vitest';
import { formatAge, formatBytes, formatDuration, formatUsd } from '../../../src/cli/render/formats.ts';

it.each([
  [0, '$0'],
  [0.0012, '$0.0012'],
  [0.25, '$0.25'],
  [0.1 + 0.2, '$0.30'],
  [0.00000004, '$0.00000004'],
  [0.000123456, '$0.00012'],
  [1e-12, '<$0.000000001'],
  [12.5, '$12.50'],
  [1204.5, '$1,204.50'],
  [-0.02, '-$0.02'],
])('writes %f USD as %s', (usd, text) => {
  expect(formatUsd(usd)).toBe(text);
});

it.each([
  [412.4, '412ms'],
  [1_240, '1.2s'],
  [59_949, '59.9s'],
  [59_990, '1m00s'],
  [64_000, '1m04s'],
  [7_380_000, '2h03m'],
  [273_600_000, '3d04h'],
])('writes %f ms as %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

it.each([
  [999, '999 B'],
  [1_000, '1.0 kB'],
  [3_000_000, '3.0 MB'],
])('writes %i bytes as %s', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text);
});

it('shows "now" for an instant that the server dates ahead of this clock', () => {
  expect(formatAge('2026-01-01T00:00:05Z', Date.parse('2026-01-01T00:00:00Z'))).toBe('now');
});
