/**
 * Bounds the answers that are kept for `X-Capstan-Cache` and for Idempotency-Keys: the size of one in the cache, and the
 * sum of either for a project. Nothing is added to a call: this process counts what it keeps. When it has kept a tenth of a project's limit
 * since it last looked, one statement for each purpose removes what is too much, the oldest first. So the sum is at most
 * the limit and a tenth of it for each process.
 */

import type { Json } from '@capstan/core/contracts/primitives';
import { LRUCache } from 'lru-cache';
import type { Config } from '../../config.ts';
import { trimCachedAnswers } from '../../db/attempt/cached-answer.ts';
import { trimKeptAnswers } from '../../db/idempotency.ts';
import { toJson } from '../../db/statements.ts';
import type { PartBase } from '../part.ts';

export interface AnswerKeeper {
  /** Why an answer is too large for the cache; null: it is not, and is counted. */
  findFault(projectId: string, answer: Json): string | null;
  /** Counts an answer that is about to be kept. */
  count(projectId: string, answer: Json): void;
  /** Resolves when nothing is being removed. */
  close(): Promise<void>;
}

/** What a repeated request is answered whose answer was removed. */
const stated = {
  code: 'answer_not_kept',
  message:
    'the call has succeeded, and its answer was removed: it was the oldest of more than the project may keep',
};

const sharesOfLimit = 10;
/** What a row takes besides its answer. */
const rowBytes = 200;
const mostProjects = 10_000;

function sizeOf(answer: Json): number {
  return Buffer.byteLength(toJson(answer));
}

interface KeeperParts extends PartBase {
  readonly config: Pick<Config, 'KEPT_ANSWER_BYTES' | 'KEPT_ANSWERS_BYTES_PER_PROJECT'>;
}

/** @returns whether it succeeded */
async function trimAnswers(
  { db, logger }: Pick<KeeperParts, 'db' | 'logger'>,
  project_id: string,
  bytes: number,
): Promise<boolean> {
  try {
    await trimCachedAnswers(db, project_id, bytes);
    await trimKeptAnswers(db, project_id, { bytes, stated });
    return true;
  } catch (error) {
    logger.warn({ err: error, project_id }, 'kept answers were not removed; this is tried again');
    return false;
  }
}

export function createAnswerKeeper(parts: KeeperParts): AnswerKeeper {
  const { KEPT_ANSWER_BYTES: mostBytes, KEPT_ANSWERS_BYTES_PER_PROJECT: limit } = parts.config;
  /** Bytes since the last look. */
  const since = new LRUCache<string, number>({ max: mostProjects });
  const underWay = new Map<string, Promise<void>>();

  const trim = async (projectId: string): Promise<void> => {
    if (!(await trimAnswers(parts, projectId, limit))) since.delete(projectId);
    underWay.delete(projectId);
  };

  const add = (projectId: string, bytes: number): void => {
    if (limit === 0) return;
    const known = since.get(projectId) ?? Number.POSITIVE_INFINITY; // another process may have kept some
    const sum = known + bytes + rowBytes;
    if (sum * sharesOfLimit <= limit || underWay.has(projectId)) {
      since.set(projectId, sum);
      return;
    }
    since.set(projectId, 0);
    underWay.set(projectId, trim(projectId));
  };

  return {
    findFault: (projectId, answer) => {
      const bytes = sizeOf(answer);
      if (bytes > mostBytes) return `the answer has ${bytes} bytes, and at most ${mostBytes} are cached`;
      add(projectId, bytes);
      return null;
    },
    count: (projectId, answer) => add(projectId, sizeOf(answer)),
    close: async () => void (await Promise.all(underWay.values())),
  };
}
