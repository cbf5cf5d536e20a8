/**
 * Money inside Capstan: an integer number of nano-USD, as bigint. A double appears only where a number enters
 * or leaves on the wire, and is taken by its shortest decimal text, so that 0.1 + 0.2 is 0.3.
 */

/** @param usd a finite, non-negative rate or amount; below a nano-USD it is rounded up, never down */
export function toNanoUsd(usd: number): bigint {
  return scaleUp(usd, 9);
}

/** The least integer that is not below `value × 10^digits`, for a finite value of at least 0. */
export function scaleUp(value: number, digits: number): bigint {
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

export function fromNanoUsd(nano: bigint): number {
  return Number(toDecimal(nano));
}

/** A limit as settings and the wire say it, where 0 is no limit. @returns null = none */
export function limitOf(usd: number): number | null {
  return usd === 0 ? null : usd;
}

/** Decimal text without an exponent: `0.000000001`, `12.5`, `-3`. */
export function formatNanoUsd(nano: bigint): string {
  return toDecimal(nano).replace(/\.?0+$/, '');
}
