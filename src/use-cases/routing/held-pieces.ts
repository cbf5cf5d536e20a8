/** How the reservation of a call has grown with it, as decisions and the ledger show it. */
import type { Decision, HeldPiece } from '@capstan/core/contracts/decision';
import { fromNanoUsd } from '@capstan/core/money/nano-usd';
import type { GrownColumns } from '../../db/attempt/attempt.ts';

type ShownGrowth = { readonly [Field in 'held_usd' | 'pieces' | 'stopped']: Decision[Field] | undefined };

/** @param row null: unknown @returns nothing for a call that held its highest possible cost */
export function showHeld(row: GrownColumns | null): ShownGrowth {
  const isGrowing = row !== null && row.expected_nano !== null;
  if (!isGrowing) return { held_usd: undefined, pieces: undefined, stopped: undefined };
  return {
    held_usd: fromNanoUsd(BigInt(row.reserved_nano)),
    pieces: listPieces(row),
    stopped: row.is_stopped ? 'budget' : undefined,
  };
}

function listPieces({ started_at, pieces, piece_ms, piece_nano }: GrownColumns): HeldPiece[] {
  const startedAt = new Date(started_at).getTime();
  const amounts = piece_nano ?? [];
  const more = pieces - amounts.length;
  return amounts.map((nano, at) => ({
    at: new Date(startedAt + (piece_ms?.[at] ?? 0)).toISOString(),
    usd: fromNanoUsd(BigInt(nano)),
    pieces: more > 0 && at === amounts.length - 1 ? more + 1 : undefined,
  }));
}
