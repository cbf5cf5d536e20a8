import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { generateKey, parseKey } from '../../../src/use-cases/access/key-text.ts';

describe('a key', () => {
  test('has the documented form and leads back to its id and hash', () => {
    for (let n = 0; n < 200; n++) {
      const { key, ...parts } = generateKey('live');
      expect(key).toMatch(/^cap_live_[0-9A-Za-z]{12}_[0-9A-Za-z]{43}[0-9A-Za-z]{6}$/);
      expect(parseKey(key)).toEqual(parts);
    }
  });

  test('with one other character is no key', () => {
    const { key } = generateKey('dev');
    const change = fc.record({ at: fc.nat(key.length - 1), to: fc.constantFrom(...'0aZ_-') });
    fc.assert(
      fc.property(change, ({ at, to }) => {
        fc.pre(key[at] !== to);
        expect(parseKey(`${key.slice(0, at)}${to}${key.slice(at + 1)}`)).toBe(null);
      }),
    );
  });

  test.each(['', 'cap_', 'Bearer x', `cap_dev_${'a'.repeat(12)}_${'b'.repeat(49)}`])('is not %j', (text) => {
    expect(parseKey(text)).toBe(null);
  });
});
