/**
 * Writes the claims and ends of attempts of one process, by two batch writers: what must survive a crash of the database
 * waits for its disk (durable), what may be lost, a slot on a free instance, does not (relaxed). Each statement first
 * writes what ended, then claims. Ends are insisted upon: they are told once, however often they are written.
 */
import type { Logger } from 'pino';
import {
  type AttemptEnd,
  type Claim,
  type ClaimResult,
  type EndResult,
  settleAndClaim,
} from '../../db/attempt/attempt.ts';
import { preventClaim } from '../../db/attempt/prevent-claim.ts';
import type { Db } from '../../db/connect.ts';
import { createInsistence } from '../delivery/insist.ts';
import { createBatchWriter } from './batch-writer.ts';

type Item =
  | { readonly kind: 'claim'; readonly claim: Claim }
  | { readonly kind: 'end'; readonly end: AttemptEnd };

/** Whether the end of a claim must survive a crash of the database: a step or money waits for it. */
export function hasDurableEnd({ step, reserved_nano }: Claim): boolean {
  return step !== null || reserved_nano > 0n;
}

export interface AttemptWriter {
  claim(claim: Claim, isDurable: boolean): Promise<ClaimResult>;
  /** Insisted upon. @param isPatient nobody waits for it: it may go with the next claim */
  settle(end: AttemptEnd, isDurable: boolean, isPatient: boolean): Promise<EndResult>;
  /** Insisted upon: a claim whose answer was lost is not made any more, or ends like that when it was made. */
  withdraw(claim: Claim, end: AttemptEnd, isDurable: boolean): Promise<void>;
  /** The process ends: what cannot be written within some seconds is given up. */
  finish(): void;
  /** Resolves when everything is written, or given up because the process ends. */
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

async function send(
  db: Db,
  items: readonly Item[],
  isDurable: boolean,
): Promise<(ClaimResult | EndResult)[]> {
  const ends: AttemptEnd[] = [];
  const claims: Claim[] = [];
  for (const item of items) {
    if (item.kind === 'end') ends.push(item.end);
    else claims.push(item.claim);
  }
  const results = await settleAndClaim(db, { ends, claims }, isDurable);
  const next = { end: 0, claim: 0 };
  return items.map(({ kind }) =>
    kind === 'end' ? (results.ends[next.end++] as EndResult) : (results.claims[next.claim++] as ClaimResult),
  );
}

export function createAttemptWriter(db: Db, logger: Logger): AttemptWriter {
  const { insist, finish, settled } = createInsistence({ isItemsFault, logger });
  const createWriter = (isDurable: boolean) =>
    createBatchWriter<Item, ClaimResult | EndResult>({
      send: (items) => send(db, items, isDurable),
      maxItems,
      patienceMs,
      isItemsFault,
    });
  const writers = { durable: createWriter(true), relaxed: createWriter(false) };
  const writerOf = (isDurable: boolean) => (isDurable ? writers.durable : writers.relaxed);
  const settle = async (end: AttemptEnd, isDurable: boolean, isPatient: boolean): Promise<EndResult> => {
    const item: Item = { kind: 'end', end };
    const result = isLarge(end)
      ? (await send(db, [item], isDurable))[0]
      : await writerOf(isDurable).push(item, isPatient);
    return result as EndResult;
  };

  return {
    claim: async (claim, isDurable) =>
      (await writerOf(isDurable).push({ kind: 'claim', claim })) as ClaimResult,
    settle: (end, isDurable, isPatient) => insist(() => settle(end, isDurable, isPatient)),
    withdraw: (claim, end, isDurable) =>
      insist(async () => {
        if (!(await preventClaim(db, claim))) await settle(end, isDurable, false);
      }),
    finish,
    settled,
  };
}
