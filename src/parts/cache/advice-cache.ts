/**
 * Caches the answers to requests for advice for 24 hours, and makes one call for all equal concurrent requests, in all
 * processes. A process leases the request as it would an Idempotency-Key; when it dies, another one takes over. Only
 * callers with the same key, labels and money share a failure, so no caller gets another one's. The call continues until its last caller
 * has disconnected.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { ProjectKey } from '@capstan/core/call/caller';
import { type CancelSignal, CancelSource, onCancel } from '@capstan/core/cancellation';
import type { AdviseAnswer } from '@capstan/core/contracts/escalation';
import type { Json } from '@capstan/core/contracts/primitives';
import type { Db } from '../../db/connect.ts';
import {
  findAdviceAnswer,
  holdKey,
  insertAdviceAnswer,
  type KeyHold,
  releaseKey,
  takeOverKey,
} from '../../db/idempotency.ts';
import type { KeyRenewer } from '../calls/open-calls.ts';
import { newToken } from '../ids.ts';

interface SharedCalls<Result> {
  /** Joins the open call, or begins it. @param begin its signal aborts when every caller has disconnected */
  join(key: string, signal: CancelSignal, begin: (stop: CancelSignal) => Promise<Result>): Promise<Result>;
}

interface SharedCall<Result> {
  readonly result: Promise<Result>;
  readonly stop: CancelSource<unknown>;
  callers: number;
}

/** One call for all equal concurrent requests in this process; it continues until its last caller has disconnected. */
function createSharedCalls<Result>(): SharedCalls<Result> {
  const calls = new Map<string, SharedCall<Result>>();

  const forget = (key: string, stop: CancelSource<unknown>): void => {
    if (calls.get(key)?.stop === stop) calls.delete(key);
  };

  const launch = (key: string, begin: (stop: CancelSignal) => Promise<Result>): SharedCall<Result> => {
    const stop = new CancelSource<unknown>();
    const result = begin(stop).finally(() => forget(key, stop));
    const call = { result, stop, callers: 0 };
    calls.set(key, call);
    return call;
  };

  return {
    join: async (key, signal, begin) => {
      const call = calls.get(key) ?? launch(key, begin);
      call.callers += 1;
      const stay = onCancel(signal, () => {
        call.callers -= 1;
        if (call.callers > 0) return;
        forget(key, call.stop); // a later caller starts a new call
        call.stop.abort(signal.reason);
      });
      try {
        return await call.result;
      } finally {
        stay();
      }
    },
  };
}

/** An answer of `/advise`, and the level that gave it. */
export interface LevelAdvice extends AdviseAnswer {
  readonly from_level: number;
}

interface AdviceQuestion {
  readonly key: ProjectKey;
  readonly digest: Buffer;
  /** The caller's remaining money, USD; null = only the budgets limit it. */
  readonly leftUsd: number | null;
  /** Aborts when the caller has disconnected. */
  readonly signal: CancelSignal;
}

export interface FoundAdvice {
  readonly advice: LevelAdvice;
  /** Answers the same request for a day. */
  readonly isKept: boolean;
}

/** @param signal aborts when all callers have disconnected */
type FindAdvice = (signal: CancelSignal) => Promise<FoundAdvice>;

export interface AdviceCache {
  answer(question: AdviceQuestion, find: FindAdvice): Promise<LevelAdvice>;
  /** Another request that gets the same answer. */
  keep(projectId: string, digest: Buffer, advice: LevelAdvice): Promise<void>;
}

const request = 'POST /advise';
const pollMs = 200;

export function createAdviceCache({
  db,
  keyRenewer,
}: {
  readonly db: Db;
  readonly keyRenewer: KeyRenewer;
}): AdviceCache {
  const flights = createSharedCalls<LevelAdvice>();

  const keep: AdviceCache['keep'] = (project_id, request_sha256, advice) =>
    insertAdviceAnswer(db, { project_id, request_sha256 }, advice as unknown as Json);

  const findOrFollow = async (
    { key: { project_id }, digest }: AdviceQuestion,
    find: () => ReturnType<FindAdvice>,
  ): Promise<LevelAdvice> => {
    const name = `advice:${digest.toString('hex')}`;
    const hold: KeyHold = { project_id, request, key: name, holder: newToken() };
    const known = await leadOrFollow(db, hold, digest);
    if (known !== null) return known as unknown as LevelAdvice;
    const release = keyRenewer.hold(hold, () => undefined);
    try {
      const { advice, isKept } = await find();
      if (isKept) await keep(project_id, digest, advice);
      return advice;
    } finally {
      release();
      await releaseKey(db, hold).catch(() => undefined); // it expires by itself
    }
  };

  return {
    answer: (question, find) => {
      const { key, digest, leftUsd, signal } = question;
      const name = JSON.stringify([digest.toString('hex'), leftUsd, key]);
      return flights.join(name, signal, (stop) => findOrFollow(question, () => find(stop)));
    },
    keep,
  };
}

/** @returns the answer that the leader has stored, or null when this process leads */
async function leadOrFollow(db: Db, hold: KeyHold, digest: Buffer): Promise<Json | null> {
  const { project_id } = hold;
  for (;;) {
    const known = await findAdviceAnswer(db, { project_id, request_sha256: digest });
    if (known !== undefined) return known;
    if ((await holdKey(db, hold, digest)) || (await takeOverKey(db, hold, hold.key))) return null;
    await sleep(pollMs);
  }
}
