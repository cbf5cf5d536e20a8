/**
 * Addresses for answers that come later. K1: an address names its attempt, how long it is good, and a signature over
 * both with a key of the installation; any server checks it without a row. The
 * address alone lets its holder answer the attempt once, so that only the instance receives it.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { readCallbackKey } from '../../db/attempt/callback.ts';
import type { Db } from '../../db/connect.ts';
import { linkBelow } from '../web-links.ts';

/** How long after its deadline an answer still settles the money of its call. */
const lateAnswersMs = 86_400_000;

export interface CallbackAddresses {
  /** The address for one attempt; undefined: instances cannot reach this installation, which has no PUBLIC_URL. */
  create(attemptId: string, timeoutMs: number): Promise<string | undefined>;
  /** @returns the attempt of an address that is good; null: it is none of ours, or too old */
  read(token: string): Promise<string | null>;
}

interface AddressParts {
  readonly db: Db;
  readonly publicUrl: string | undefined;
}

function sign(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

/** @param nowMs Unix time */
export function createCallbackAddresses(
  { db, publicUrl }: AddressParts,
  nowMs: () => number = Date.now,
): CallbackAddresses {
  let known: Promise<Buffer> | null = null;
  const readKey = (): Promise<Buffer> => {
    known ??= readCallbackKey(db).catch((error: unknown) => {
      known = null;
      throw error;
    });
    return known;
  };
  return {
    create: async (attemptId, timeoutMs) => {
      if (publicUrl === undefined) return undefined;
      const text = `${attemptId}.${Math.ceil((nowMs() + timeoutMs + lateAnswersMs) / 1_000).toString(36)}`;
      const signature = sign(await readKey(), text).toString('base64url');
      return linkBelow(publicUrl, `v1/callbacks/${text}.${signature}`);
    },
    read: async (token) => {
      const [attemptId = '', until = '', signature = '', ...more] = token.split('.');
      const given = Buffer.from(signature, 'base64url');
      const due = sign(await readKey(), `${attemptId}.${until}`);
      const isOurs = given.length === due.length && timingSafeEqual(given, due) && more.length === 0;
      return isOurs && Number.parseInt(until, 36) * 1_000 > nowMs() ? attemptId : null;
    },
  };
}
