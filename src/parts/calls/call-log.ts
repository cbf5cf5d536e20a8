/**
 * Writes the log lines of instances into the logs of the runs. No call waits for it: the lines of all calls of a
 * process gather and are written by one statement after another, on one connection. The flush at the end of a call is
 * sent before the statement that settles the call, so it mostly precedes the end of its step in the log.
 *
 * Runs take turns in each statement, and each has a bounded queue, so a talkative capability neither delays nor drops
 * the lines of others.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { CallLog } from '@capstan/core/call/log-lines';
import type { StepLogData } from '@capstan/core/contracts/event';
import type { StepKey } from '../../db/attempt/attempt.ts';
import { insertStepLog, type StepLogLine } from '../../db/step/step-progress.ts';
import type { PartBase } from '../part.ts';
import type { LogOrigin } from './routed-call.ts';

export interface CallLogWriter {
  open(step: StepKey, origin: LogOrigin): CallLog;
  /** Resolves when everything is written, or given up. */
  close(): Promise<void>;
}

interface WaitingLine extends Omit<StepLogLine, 'age_ms'> {
  /** By a monotonic clock. */
  readonly cameAt: number;
}

type Queues = Map<string, WaitingLine[]>;

/** The pause between two statements, unless a call has ended or a batch is full. */
const pauseMs = 100;
const batchLines = 256;
/** The most lines of one run before another has its turn. */
const turnLines = 32;
const mostOfRun = 1_024;
const mostWaiting = 8_192;
const retries = { times: 3, pauseMs: 1_000 } as const;

/** A run with lines left after its turn moves behind the others, where the same loop finds it again. */
function takeBatch(queues: Queues): WaitingLine[] {
  const batch: WaitingLine[] = [];
  for (const [runId, lines] of queues) {
    if (batch.length >= batchLines) break;
    batch.push(...lines.splice(0, Math.min(turnLines, batchLines - batch.length)));
    queues.delete(runId);
    if (lines.length > 0) queues.set(runId, lines);
  }
  return batch;
}

/** @param isClosing the process is shutting down: no more retries */
async function writeBatch(
  { db, logger }: LogCtx,
  batch: readonly WaitingLine[],
  isClosing: () => boolean,
): Promise<void> {
  for (let failures = 0; ; failures += 1) {
    try {
      const now = performance.now();
      const lines = batch.map(({ cameAt, ...line }) => ({ age_ms: now - cameAt, ...line }));
      return await insertStepLog(db, lines);
    } catch (error) {
      const isOver = failures >= retries.times || isClosing();
      const fate = isOver ? 'they are lost' : 'trying again';
      logger.warn({ err: error }, `${batch.length} lines of capabilities could not be stored; ${fate}`);
      if (isOver) return;
      await pause(retries.pauseMs);
    }
  }
}

type LogCtx = PartBase;

interface WaitingRoom {
  size(): number;
  /** @returns false when the queue is full, in total or for that run */
  add(line: WaitingLine): boolean;
  /** The next lines, some of each run. */
  take(): readonly WaitingLine[];
}

function createWaitingRoom(): WaitingRoom {
  const queues: Queues = new Map();
  let size = 0;
  return {
    size: () => size,
    add: (line) => {
      const ofRun = queues.get(line.run_id) ?? [];
      if (size >= mostWaiting || ofRun.length >= mostOfRun) return false;
      ofRun.push(line);
      queues.set(line.run_id, ofRun);
      size += 1;
      return true;
    },
    take: () => {
      const batch = takeBatch(queues);
      size -= batch.length;
      return batch;
    },
  };
}

interface LogQueue {
  /** The first line after a pause takes along the lines of the same turn. @returns false when there is no room */
  push(line: WaitingLine): boolean;
  /** Writes the queued lines now. */
  hurry(): void;
  settled(): Promise<void>;
}

function createLogQueue(ctx: LogCtx): LogQueue {
  const room = createWaitingRoom();
  let isUrgent = false;
  let timer: NodeJS.Timeout | null = null;
  let busy: Promise<void> | null = null;
  let isClosing = false;

  const work = async (): Promise<void> => {
    do {
      isUrgent = false;
      await writeBatch(ctx, room.take(), () => isClosing);
    } while (room.size() > 0 && (isUrgent || room.size() >= batchLines));
    busy = null;
    timer = setTimeout(start, pauseMs).unref();
  };
  const start = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (busy === null && room.size() > 0) busy = work();
  };
  const hurry = (): void => {
    isUrgent = true;
    start();
  };
  return {
    push: (line) => {
      if (!room.add(line)) return false;
      if (busy === null && timer === null) timer = setTimeout(start, 0);
      return true;
    },
    hurry,
    settled: async () => {
      isClosing = true;
      while (busy !== null || room.size() > 0) {
        hurry();
        await busy;
      }
    },
  };
}

export function createCallLogWriter(ctx: LogCtx): CallLogWriter {
  const queue = createLogQueue(ctx);
  return {
    open: ({ run_id, step_id, item }, { attempt, endpoint }) => {
      let hasLines = false;
      return {
        note: ({ level, message, isDelta }) => {
          hasLines = true;
          const data: StepLogData = { level, message, endpoint, ...(isDelta === true && { delta: true }) };
          return queue.push({ run_id, step_id, item, attempt, data, cameAt: performance.now() });
        },
        flush: () => {
          if (hasLines) queue.hurry();
        },
      };
    },
    close: queue.settled,
  };
}
