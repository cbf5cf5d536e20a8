/** Amounts as a person reads them: never in exponents, never more digits than say something. */

function decimalsOf(usd: number): number {
  const size = Math.abs(usd);
  if (size >= 1) return 2;
  if (size >= 0.01) return 4;
  return Math.min(9, 2 - Math.floor(Math.log10(size)));
}

/** `0`, `0.04`, `0.0000125`, `1,204.50`; without the unit, for columns that name it. */
export function formatAmount(usd: number): string {
  if (usd === 0) return '0';
  const decimals = decimalsOf(usd);
  const text = usd.toLocaleString('en-US', {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  });
  return Math.abs(usd) >= 1 ? text : text.replace(/0+$/, '').replace(/\.$/, '');
}

export function formatUsd(usd: number): string {
  return `${formatAmount(usd)} USD`;
}
