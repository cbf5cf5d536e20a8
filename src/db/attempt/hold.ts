/** Reservations that grow with their calls: sql/holds.sql. */
import type { Db } from '../connect.ts';
import { runPrepared } from '../statements.ts';
import type { ExpectedHold } from './attempt.ts';

/** An open call that needs a further piece of its budgets (core/money/holds.ts). */
export interface HoldPiece {
  readonly attempt_id: string;
  readonly token: string;
  /** Nano-USD: the most and the least that it may get; it gets nothing where the least has no room. */
  readonly most: bigint;
  readonly least: bigint;
  readonly outlook: ExpectedHold;
}

export interface GrantedPiece {
  /** Nano-USD; 0: there is no room. */
  readonly granted: bigint;
  /** The room that its budgets have left, nano-USD; null: they have no limit. */
  readonly room: bigint | null;
}

/** @returns for each call its piece; null: the call is no longer open */
export async function growHolds(
  db: Db,
  pieces: readonly HoldPiece[],
): Promise<readonly (GrantedPiece | null)[]> {
  const { rows } = await runPrepared<{ attempt_id: string; granted_nano: string; room_nano: string | null }>(
    db,
    {
      name: 'grow_holds',
      text: 'select * from grow_holds($1)',
      values: [
        JSON.stringify(
          pieces.map(({ attempt_id, token, most, least, outlook: { mean, variance } }) => ({
            attempt_id,
            token,
            most_nano: `${most}`,
            least_nano: `${least}`,
            expected_nano: Math.ceil(mean),
            variance,
          })),
        ),
      ],
    },
  );
  const granted = new Map(
    rows.map(({ attempt_id, granted_nano, room_nano }) => [
      attempt_id,
      { granted: BigInt(granted_nano), room: room_nano === null ? null : BigInt(room_nano) },
    ]),
  );
  return pieces.map(({ attempt_id }) => granted.get(attempt_id) ?? null);
}
