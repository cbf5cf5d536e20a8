/** How the reservation of a call has grown with it, in words of the CLI and the console. */
import type { Decision } from '../contracts/decision.ts';
import { formatUsd } from './nano-usd.ts';

type GrownHold = Pick<Decision, 'held_usd' | 'pieces'>;

function countPieces({ pieces = [] }: GrownHold): number {
  return pieces.reduce((count, piece) => count + (piece.pieces ?? 1), 0);
}

/** `grown to $0.0042 in 7 pieces`; null: it has not grown. */
export function describeGrowth(held: GrownHold): string | null {
  const count = countPieces(held);
  if (held.held_usd === undefined || count === 0) return null;
  return `grown to ${formatUsd(held.held_usd)} in ${count === 1 ? '1 piece' : `${count} pieces`}`;
}
