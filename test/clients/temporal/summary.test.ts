import { expect, test } from 'vitest';
import { toSummary } from '../../../src/clients/temporal/summary.ts';

test.each(['p 1.0', `p ${'x'.repeat(198)}`])('%s is left as it is', (text) => {
  expect(toSummary(text)).toBe(text);
});

test.each(['x', 'ü', '漢', '😀'])(
  '128 of %s and a long name are cut to 200 bytes, between characters',
  (character) => {
    const summary = toSummary(`${'p'.repeat(64)} ${character.repeat(300)}`);
    expect(Buffer.byteLength(summary)).toBeLessThanOrEqual(200);
    expect(Buffer.byteLength(summary)).toBeGreaterThan(190);
    expect(summary).toMatch(new RegExp(`^p{64} (?:${character})+…$`, 'u'));
  },
);
