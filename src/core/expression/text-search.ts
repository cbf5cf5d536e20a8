/**
 * Whether one text contains another, in time linear in both (Knuth, Morris, Pratt). The engine's own search takes
 * the product of both for texts made for it, which are seconds at sizes that a job may have.
 */
export function includesText(text: string, wanted: string): boolean {
  if (wanted.length <= shortText) return text.includes(wanted);
  const borders = bordersOf(wanted);
  let matched = 0;
  for (let at = 0; at < text.length && matched < wanted.length; at++) {
    matched = extend(wanted, borders, matched, text.charCodeAt(at));
  }
  return matched === wanted.length;
}

/** Up to here the product is no more than a small multiple of the text. */
const shortText = 32;

/** By length of a beginning: the length of its longest shorter beginning that is also its end. */
function bordersOf(wanted: string): Int32Array {
  const borders = new Int32Array(wanted.length + 1);
  for (let length = 2; length <= wanted.length; length++) {
    borders[length] = extend(wanted, borders, borders[length - 1] ?? 0, wanted.charCodeAt(length - 1));
  }
  return borders;
}

/** How much of `wanted` stands before and at a unit, when `matched` units of it stood before it. */
function extend(wanted: string, borders: Int32Array, matched: number, unit: number): number {
  let length = matched;
  while (length > 0 && wanted.charCodeAt(length) !== unit) length = borders[length] ?? 0;
  return wanted.charCodeAt(length) === unit ? length + 1 : 0;
}
