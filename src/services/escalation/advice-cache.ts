/**
 * One answer to one request for advice: kept for 24 hours, and asked for once however many want it at the same time, in
 * all processes. A process holds the request as it would an Idempotency-Key; when it dies, another one takes over.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { AdviseAnswer } from '../../contracts/escalation.ts';
import type { Json } from '../../contracts/primitives.ts';
import { findAdviceAnswer, insertAdviceAnswer } from '../../db/advice-answer.ts';
import type { Db } from '../../db/connect.ts';
import { holdKey, type KeyHold, releaseKey, renewKeys, takeOverKey } from '../../db/idempotency-hold.ts';
import { createHoldKeeper } from '../hold-keeper.ts';
import { newToken } from '../ids.ts';

/** An answer of `/advise`, and the level that gave it. */
export interface LevelAdvice extends AdviseAnswer {
  readonly from_level: number;
}

type FindAdvice = () => Promise<{ readonly advice: LevelAdvice; readonly isKept: boolean }>;

export interface AdviceCache {
  answer(projectId: string, digest: Buffer, find: FindAdvice): Promise<LevelAdvice>;
  /** Another request that is to be answered with the same. */
  keep(projectId: string, digest: Buffer, advice: LevelAdvice): Promise<void>;
  stop(): void;
}

const request = 'POST /advise';
const renewalMs = 2_500;
const pollMs = 200;

export const createAdviceCache = ({
  db,
  logger,
}: {
  readonly db: Db;
  readonly logger: Logger;
}): AdviceCache => {
  const flights = new Map<string, Promise<LevelAdvice>>();
  const keeper = createHoldKeeper<KeyHold>({
    renew: (held) => renewKeys(db, held),
    idOf: ({ holder }) => holder,
    ...{ intervalMs: renewalMs, retryMs: renewalMs, logger },
  });

  /** @returns the answer that somebody else gave meanwhile, or null when it is ours to give */
  const takeTurn = async (hold: KeyHold, digest: Buffer): Promise<Json | null> => {
    for (;;) {
      const known = await findAdviceAnswer(db, hold.project_id, digest);
      if (known !== undefined) return known;
      if ((await holdKey(db, hold, digest)) || (await takeOverKey(db, hold, hold.key))) return null;
      await sleep(pollMs);
    }
  };

  const keep: AdviceCache['keep'] = (projectId, digest, advice) =>
    insertAdviceAnswer(db, projectId, digest, advice as unknown as Json);

  const fly: AdviceCache['answer'] = async (project_id, digest, find) => {
    const hold: KeyHold = {
      project_id,
      request,
      key: `advice:${digest.toString('hex')}`,
      holder: newToken(),
    };
    const known = await takeTurn(hold, digest);
    if (known !== null) return known as unknown as LevelAdvice;
    const release = keeper.hold(hold, () => undefined);
    try {
      const { advice, isKept } = await find();
      if (isKept) await keep(project_id, digest, advice);
      return advice;
    } finally {
      release();
      await releaseKey(db, hold).catch(() => undefined); // it becomes free by itself
    }
  };

  return {
    answer: (projectId, digest, find) => {
      const key = `${projectId} ${digest.toString('hex')}`;
      const known = flights.get(key);
      if (known !== undefined) return known;
      const flight = fly(projectId, digest, find).finally(() => flights.delete(key));
      flights.set(key, flight);
      return flight;
    },
    keep,
    stop: () => keeper.stop(),
  };
};
