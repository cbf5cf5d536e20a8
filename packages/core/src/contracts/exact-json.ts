/**
 * JSON whose numbers stay as they are written. `JSON.parse` makes a double of every number, which changes a 64-bit id
 * or a time in nanoseconds without a word.
 *
 * A number is kept if a double, written with as many digits, reads the same (`isKept`). Capstan must keep what a user
 * sends. In the answer of an instance, a number that is not kept becomes an `ExactNumber`: it can be passed on,
 * compared with ==, and written as text; nothing calculates with it. Texts without such a number take one search.
 */

/** Digits without zeros around them, and the power of ten of the last one. */
interface Decimal {
  readonly digits: string;
  readonly exponent: number;
  /** How many are written from the first that is not 0. */
  readonly length: number;
}

function readDecimal(written: string): Decimal {
  const [, whole = '', fraction = '', power = '0'] =
    /^[-+]?([0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]+))?$/.exec(written) ?? [];
  const all = `${whole}${fraction}`.replace(/^0+/, '');
  let end = all.length;
  while (all[end - 1] === '0') end -= 1;
  const digits = all.slice(0, end);
  const exponent = Number(power) - fraction.length + all.length - digits.length;
  return { digits, exponent, length: all.length };
}

function isSame(a: Decimal, b: Decimal): boolean {
  return a.digits === b.digits && (a.digits === '' || a.exponent === b.exponent);
}

/** `toPrecision` writes no more. */
const mostDigits = 100;

/** Whether a double keeps a decimal number as it is written in JSON or YAML. */
export function isKept(written: string): boolean {
  const value = Number(written);
  if (!Number.isFinite(value)) return false;
  if (String(value) === written) return true; // as a rule
  const decimal = readDecimal(written);
  const { length } = decimal;
  if (length === 0 || isSame(decimal, readDecimal(String(value)))) return true;
  return length <= mostDigits && isSame(decimal, readDecimal(value.toPrecision(length)));
}

const longRun = 16;

function isOfRun(unit: number): boolean {
  return (unit >= 0x30 && unit <= 0x39) || unit === 0x2e;
}

/** Whether 16 digits and points follow one another, by a look at every 16th unit. */
function hasLongRun(text: string): boolean {
  for (let at = longRun - 1; at < text.length; at += longRun) {
    if (!isOfRun(text.charCodeAt(at))) continue;
    let start = at;
    while (isOfRun(text.charCodeAt(start - 1))) start--;
    while (isOfRun(text.charCodeAt(at + 1))) at++;
    if (at - start >= longRun - 1) return true;
  }
  return false;
}

const largeExponent = /[0-9][eE][+-]?[0-9]{3}/;

/** Any 15 digits are kept, unless their exponent has three. */
function mayLose(text: string): boolean {
  return hasLongRun(text) || largeExponent.test(text);
}

interface WrittenNumber {
  readonly at: number;
  readonly written: string;
}

/** Where the string that begins before `from` ends. */
export function skipString(text: string, from: number): number {
  for (let end = text.indexOf('"', from); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text[end - 1 - slashes] === '\\') slashes++;
    if (slashes % 2 === 0) return end + 1;
  }
  return text.length;
}

/** The numbers of a JSON text that a double does not keep, outside of strings. The grammar is not checked. */
export function* lostNumbers(text: string): Generator<WrittenNumber> {
  if (!mayLose(text)) return;
  const token = /"|-?[0-9][0-9.eE+-]*/g;
  for (let found = token.exec(text); found !== null; found = token.exec(text)) {
    const [written] = found;
    if (written === '"') token.lastIndex = skipString(text, token.lastIndex);
    else if (!isKept(written)) yield { at: found.index, written };
  }
}

const mark = '\u0000number:';
const writtenMark = String.raw`\u0000number:`;

/** Whether a text is the one that stands for a number while JSON is read and written; no value may hold it. */
export function isReservedText(text: string): boolean {
  return text.startsWith(mark);
}

/** A finite number that a double does not keep, as it was written. */
export class ExactNumber {
  readonly written: string;

  constructor(written: string) {
    this.written = written;
  }

  /** The nearest double: for checks against a schema, not for calculations. */
  get nearest(): number {
    return Number(this.written);
  }

  equals(other: ExactNumber): boolean {
    const isNegative = this.written.startsWith('-');
    return (
      isNegative === other.written.startsWith('-') &&
      isSame(readDecimal(this.written), readDecimal(other.written))
    );
  }

  toString(): string {
    return this.written;
  }

  /** `writeExactJson` turns it into the number. */
  toJSON(): string {
    return mark + this.written;
  }
}

function revive(_key: string, value: unknown): unknown {
  return typeof value === 'string' && isReservedText(value)
    ? new ExactNumber(value.slice(mark.length))
    : value;
}

/** `JSON.parse`, with an `ExactNumber` for each finite number that a double does not keep. @throws SyntaxError */
export function parseExactJson(text: string): unknown {
  const parts: string[] = [];
  let end = 0;
  for (const { at, written } of lostNumbers(text)) {
    if (!Number.isFinite(Number(written))) continue;
    parts.push(text.slice(end, at), JSON.stringify(mark + written));
    end = at + written.length;
  }
  return end === 0 ? JSON.parse(text) : JSON.parse(parts.join('') + text.slice(end), revive);
}

const marked = /"\\u0000number:(-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"/g;

/** Puts the numbers into a text that `JSON.stringify` has written. */
export function restoreNumbers(text: string): string {
  return text.includes(writtenMark) ? text.replace(marked, '$1') : text;
}

/** `JSON.stringify`, with every `ExactNumber` as the number that it was. */
export function writeExactJson(value: unknown, indent?: number): string {
  return restoreNumbers(JSON.stringify(value, undefined, indent));
}
