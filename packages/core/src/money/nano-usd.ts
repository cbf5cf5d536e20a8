/**
 * Amounts inside Capstan: an integer number of nano-USD, as bigint. A double appears only where a number enters or
 * leaves on the wire. Its shortest decimal text is read, so that 0.1 + 0.2 is 0.3.
 */

/** @param usd a finite, non-negative rate or amount; below a nano-USD it is rounded up, never down */
export function toNanoUsd(usd: number): bigint {
  return scaleUp(usd, 9);
}

/** The least integer that is not below `value × 10^digits`, for a finite value of at least 0 and up to 22 digits. */
export function scaleUp(value: number, digits: number): bigint {
  // Below 1e15 no two integers have the same double as their quotient, so this one's decimal text is the value's own.
  const power = 10 ** digits;
  const nearest = Math.round(value * power);
  if (nearest < 1e15 && nearest / power === value) return BigInt(nearest);
  return scaleText(value, digits);
}

/** The same, by the shortest decimal text of the value. */
function scaleText(value: number, digits: number): bigint {
  const [mantissa, exponent = '0'] = String(value).split('e') as [string, string?];
  const [integer, fraction = ''] = mantissa.split('.') as [string, string?];
  const significand = BigInt(integer + fraction);
  const shift = digits + Number(exponent) - fraction.length;
  if (shift >= 0) return significand * 10n ** BigInt(shift);
  const divisor = 10n ** BigInt(-shift);
  return (significand + divisor - 1n) / divisor;
}

function toDecimal(nano: bigint): string {
  const sign = nano < 0n ? '-' : '';
  const digits = nano.toString().replace('-', '').padStart(10, '0');
  return `${sign}${digits.slice(0, -9)}.${digits.slice(-9)}`;
}

/** The double nearest to the amount: the quotient of two exact doubles is that, too. */
export function fromNanoUsd(nano: bigint): number {
  const double = Number(nano);
  return Number.isSafeInteger(double) ? double / 1e9 : Number(toDecimal(nano));
}

/** Reads a limit from settings or the wire, where 0 is no limit. @returns null = none */
export function limitOf(usd: number): number | null {
  return usd === 0 ? null : usd;
}

/** Decimal text without an exponent: `0.000000001`, `12.5`, `-3`. */
export function formatNanoUsd(nano: bigint): string {
  return toDecimal(nano).replace(/\.?0+$/, '');
}

// Amounts for people, on the command line and in the console.

function showSize(usd: number): string {
  if (usd >= 1) return `$${usd.toFixed(2).replace(/\B(?=(\d{3})+\.)/g, ',')}`;
  if (usd < 1e-9) return '<$0.000000001';
  const twoSignificant = 1 - Math.floor(Math.log10(usd));
  const digits = usd.toFixed(Math.min(9, Math.max(4, twoSignificant)));
  return `$${digits.replace(/(\.\d\d\d*?)0+$/, '$1')}`;
}

/** `$0`, `$0.0012`, `$0.25`, `$1,204.50`, `-$3.00`: never an exponent, never a false zero. */
export function formatUsd(usd: number): string {
  if (usd === 0) return '$0';
  return usd < 0 ? `-${showSize(-usd)}` : showSize(usd);
}
