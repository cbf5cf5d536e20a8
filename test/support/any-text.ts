import fc from 'fast-check';

const surrogates = { first: 0xd800, count: 0x800 };

/**
 * Any code point but surrogates, like fast-check's unit `binary`; that one makes a table of all of them, a million,
 * before its first text.
 */
const codePoint = fc.nat({ max: 0x10ffff - surrogates.count }).map(
  (index) => String.fromCodePoint(index < surrogates.first ? index : index + surrogates.count),
  (text) => {
    const [one, more] = typeof text === 'string' ? [...text] : [];
    if (one === undefined || more !== undefined) throw new Error('not one code point');
    const code = one.codePointAt(0) ?? 0;
    return code < surrogates.first ? code : code - surrogates.count;
  },
);

/** A text of any characters. */
export function anyText(lengths: { minLength?: number; maxLength?: number } = {}): fc.Arbitrary<string> {
  return fc.string({ ...lengths, unit: codePoint });
}
