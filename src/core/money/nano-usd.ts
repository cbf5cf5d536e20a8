/**
 * Money inside Capstan: an integer number of nano-USD, as bigint. A double appears only where a number enters
 * or leaves on the wire, so that 0.1 + 0.2 is 0.3.
 */

/** @param usd a finite, non-negative rate or amount; below a nano-USD it is rounded up, never down */
export const toNanoUsd = (usd: number): bigint => {
  const [integer = '0', fraction = ''] = decimal(usd).split('.');
  const nano = BigInt(integer) * 1_000_000_000n + BigInt(fraction.slice(0, 9).padEnd(9, '0') || '0');
  return /[1-9]/.test(fraction.slice(9)) ? nano + 1n : nano;
};

/** The shortest decimal text of a double, without an exponent. */
const decimal = (value: number): string => {
  const text = String(value);
  if (!text.includes('e')) return text;
  return value.toFixed(30).replace(/\.?0+$/, '');
};

export const fromNanoUsd = (nano: bigint): number => {
  const sign = nano < 0n ? '-' : '';
  const digits = (nano < 0n ? -nano : nano).toString().padStart(10, '0');
  return Number(`${sign}${digits.slice(0, -9)}.${digits.slice(-9)}`);
};
