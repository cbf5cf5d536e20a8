/** Money as people read it, on the command line and in the console. */

function showSize(usd: number): string {
  if (usd >= 1) return `$${usd.toFixed(2).replace(/\B(?=(\d{3})+\.)/g, ',')}`;
  if (usd < 1e-9) return '<$0.000000001';
  const leadingZeros = Math.max(0, -Math.floor(Math.log10(usd)) - 1);
  const digits = usd.toFixed(Math.min(9, Math.max(4, leadingZeros + 2)));
  return `$${digits.replace(/(\.\d\d\d*?)0+$/, '$1')}`;
}

/** `$0`, `$0.0012`, `$0.25`, `$1,204.50`, `-$3.00`: never an exponent, never a false zero. */
export function formatUsd(usd: number): string {
  if (usd === 0) return '$0';
  return usd < 0 ? `-${showSize(-usd)}` : showSize(usd);
}
