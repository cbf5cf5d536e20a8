/**
 * Claims and ends of attempts of one process, in two lanes: what must survive a crash of the database waits for its
 * disk, what may be lost (a slot on a free instance) does not. Each statement first writes what ended, then claims.
 */
import {
  type AttemptEnd,
  type Claim,
  type ClaimResult,
  type EndResult,
  takeTurn,
} from '../../db/attempt/attempt.ts';
import type { Db } from '../../db/connect.ts';
import { createLane } from './batch-writer.ts';

type Item =
  | { readonly kind: 'claim'; readonly claim: Claim }
  | { readonly kind: 'end'; readonly end: AttemptEnd };

export interface AttemptLanes {
  claim(claim: Claim, isDurable: boolean): Promise<ClaimResult>;
  /** @param isPatient nobody waits for it: it may go with the next claim */
  settle(end: AttemptEnd, isDurable: boolean, isPatient: boolean): Promise<EndResult>;
  /** What `settled` waits for: a settlement that is tried again until it is written. */
  follow(task: Promise<unknown>): void;
  /** Resolves when everything is written. */
  settled(): Promise<void>;
}

const maxItems = 64;
const patienceMs = 10;
/** An output of more characters than this goes alone. */
const largeOutput = 65_536;

function isLarge({ output }: AttemptEnd): boolean {
  return output !== undefined && output !== null && JSON.stringify(output).length > largeOutput;
}

/** Data, constraints, deadlocks and raised exceptions by SQLSTATE; all else is the database's or the way to it. */
function isItemsFault(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^(22|23|40|42|P0)\w{3}$/.test(String(error.code));
}

async function sendTurn(
  db: Db,
  items: readonly Item[],
  isDurable: boolean,
): Promise<(ClaimResult | EndResult)[]> {
  const ends = items.flatMap((item) => (item.kind === 'end' ? [item.end] : []));
  const claims = items.flatMap((item) => (item.kind === 'claim' ? [item.claim] : []));
  const results = await takeTurn(db, { ends, claims }, isDurable);
  const next = { end: results.ends.values(), claim: results.claims.values() };
  return items.map(({ kind }) => next[kind].next().value as ClaimResult | EndResult);
}

export function createAttemptLanes(db: Db): AttemptLanes {
  const createAttemptLane = (isDurable: boolean) =>
    createLane<Item, ClaimResult | EndResult>({
      send: (items) => sendTurn(db, items, isDurable),
      maxItems,
      patienceMs,
      isItemsFault,
    });
  const lanes = { durable: createAttemptLane(true), relaxed: createAttemptLane(false) };
  const laneOf = (isDurable: boolean) => (isDurable ? lanes.durable : lanes.relaxed);
  const open = new Set<Promise<unknown>>();

  const settleNow = async (end: AttemptEnd, isDurable: boolean, isPatient: boolean): Promise<EndResult> => {
    const [result] = isLarge(end)
      ? await sendTurn(db, [{ kind: 'end', end }], isDurable)
      : [await laneOf(isDurable).push({ kind: 'end', end }, isPatient)];
    return result as EndResult;
  };

  return {
    claim: async (claim, isDurable) =>
      (await laneOf(isDurable).push({ kind: 'claim', claim })) as ClaimResult,
    settle: (end, isDurable, isPatient) => {
      return settleNow(end, isDurable, isPatient);
    },
    follow: (task) => {
      const end = (): boolean => open.delete(task);
      open.add(task);
      task.then(end, end);
    },
    settled: async () => {
      await Promise.allSettled(open);
    },
  };
}
