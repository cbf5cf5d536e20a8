/**
 * The holds of this process that grow with their calls (G1 to G4, core/money/holds.ts). A call reports its use; its
 * next piece is asked for before the last is used, with those of other calls, in one statement. Where there is no room,
 * the call is stopped.
 */

import {
  type CostOutlook,
  expectCost,
  type GrowingCall,
  type HoldTerms,
  holdFor,
  mostAtEnd,
  mustGrow,
  mustStop,
  termsAt,
  usedNano,
} from '@capstan/core/money/holds';
import { LRUCache } from 'lru-cache';
import type { Claim } from '../../db/attempt/attempt.ts';
import { type GrantedPiece, growHolds, type HoldPiece } from '../../db/attempt/hold.ts';
import type { PartBase } from '../part.ts';
import { createBatchWriter } from './attempt-writer.ts';

/** The calls that share their budgets. */
export type Payer = Pick<Claim, 'project_id' | 'capability' | 'run_id' | 'scopes'>;

export interface OpenHold {
  /** What the call holds now, nano-USD. */
  readonly held: bigint;
  /** The most that it has cost if it ends now, nano-USD. */
  readonly most: bigint;
  /** @param units that the call has used so far */
  use(units: number): void;
  /** The call has ended. */
  end(): void;
}

export interface Holds {
  /** The first hold of a call, by what is known of the room of its budgets. */
  first(payer: Payer, call: GrowingCall): { readonly reserved: bigint; readonly outlook: CostOutlook };
  /** Watches the hold of a claimed call. @param stop cancels the call, whose use is settled then */
  open(claim: Claim, call: GrowingCall, stop: () => void): OpenHold;
}

/** Rooms that are known, and for how long: they decide about sizes alone. */
const mostRooms = 1_000;
const roomMs = 10_000;
/** A call without room asks again after this time. */
const askAgainMs = 250;
/** Pieces of one moment go out together. */
const patienceMs = 20;
const maxPieces = 64;

function keyOf({ project_id, capability, run_id, scopes = [] }: Payer): string {
  return JSON.stringify([project_id, capability, run_id, scopes]);
}

interface HoldSource {
  readonly ask: (piece: HoldPiece) => Promise<GrantedPiece | null>;
  readonly noteRoom: (room: bigint | null) => void;
  readonly roomNano: () => number | null;
}

class Hold implements OpenHold {
  readonly #claim: Claim;
  readonly #call: GrowingCall;
  readonly #source: HoldSource;
  #stop: (() => void) | null;
  #held: number;
  #units = 0;
  #isAsking = false;
  #isRefused = false;
  #askAgainAt = 0;
  readonly #beganAt = performance.now();

  constructor(
    claim: Claim,
    call: GrowingCall,
    { stop, ...source }: HoldSource & { readonly stop: () => void },
  ) {
    this.#claim = claim;
    this.#call = call;
    this.#source = source;
    this.#stop = stop;
    this.#held = Number(claim.reserved_nano);
  }

  get held(): bigint {
    return BigInt(this.#held);
  }

  get most(): bigint {
    return BigInt(mostAtEnd(this.terms, this.#units, this.#held));
  }

  use(units: number): void {
    if (this.#stop === null || units < this.#units) return;
    this.#units = units;
    const { terms } = this;
    if (!mustGrow(terms, units, this.#held)) return;
    const nowMs = performance.now();
    if (!this.#isAsking && nowMs >= this.#askAgainAt) this.#ask(terms);
    this.#stopIfOver();
  }

  end(): void {
    this.#stop = null;
  }

  private get terms(): HoldTerms {
    return termsAt(this.#call.terms, this.#units, performance.now() - this.#beganAt);
  }

  /** The units ahead are for a piece that is on its way, or for the end of the call where there is none. */
  #stopIfOver(): void {
    const { terms } = this;
    const isUsed = this.#isRefused
      ? mustStop(terms, this.#units, this.#held)
      : this.#held < terms.mostNano && usedNano(terms, this.#units) >= this.#held;
    if (!isUsed || this.#stop === null) return;
    this.#stop();
    this.#stop = null;
  }

  #ask(terms: HoldTerms): void {
    this.#isAsking = true;
    const known = { units: this.#units, heldNano: this.#held };
    const least = holdFor(terms, { ...known, roomNano: 0 }) - this.#held;
    const most = holdFor(terms, { ...known, roomNano: this.#source.roomNano() }) - this.#held;
    const { attempt_id, token } = this.#claim;
    const outlook = expectCost(terms, this.#call.lengths, this.#units);
    this.#source
      .ask({ attempt_id, token, least: BigInt(least), most: BigInt(most), outlook })
      .then((piece) => this.#note(piece))
      .catch(() => this.#note({ granted: 0n, room: 0n }))
      .finally(() => {
        this.#isAsking = false;
        this.use(this.#units);
      });
  }

  #note(piece: GrantedPiece | null): void {
    // Null: the attempt has ended, or another process owns it; this call learns that from its lease.
    const { granted, room } = piece ?? { granted: 0n, room: 0n };
    if (granted === 0n) this.#askAgainAt = performance.now() + askAgainMs;
    if (piece === null) return;
    this.#source.noteRoom(room);
    this.#isRefused = granted === 0n;
    this.#held += Number(granted);
  }
}

export function createHolds({ db, logger }: PartBase): Holds {
  const rooms = new LRUCache<string, { readonly nano: number | null }>({ max: mostRooms, ttl: roomMs });
  const writer = createBatchWriter<HoldPiece, GrantedPiece | null>({
    send: (pieces) => growHolds(db, pieces),
    maxItems: maxPieces,
    patienceMs,
    isItemsFault: () => false,
  });
  const roomOf = (key: string): number | null => {
    const room = rooms.get(key);
    return room === undefined ? 0 : room.nano;
  };
  return {
    first: (payer, { terms, lengths }) => ({
      reserved: BigInt(holdFor(terms, { units: 0, heldNano: 0, roomNano: roomOf(keyOf(payer)) })),
      outlook: expectCost(terms, lengths, 0),
    }),
    open: (claim, call, stop) => {
      const key = keyOf(claim);
      return new Hold(claim, call, {
        stop,
        ask: (piece) =>
          writer.push(piece, true).catch((error: unknown) => {
            logger.warn({ err: error }, 'a hold could not grow');
            throw error;
          }),
        noteRoom: (room) => rooms.set(key, { nano: room === null ? null : Number(room) }),
        roomNano: () => roomOf(key),
      });
    },
  };
}
