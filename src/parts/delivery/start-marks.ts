/** Starts of runs that Temporal has taken, until the database knows. */
import type { Db } from '../../db/connect.ts';
import { markStartsDelivered, type StartedRow, type StartMark } from '../../db/run/run-delivery.ts';

const momentMs = 50;

/** @returns the requests to the run since its row was read */
export type MarkStart = (mark: StartMark) => Promise<StartedRow>;

const nothing: StartedRow = { is_cancelled: false, is_terminated: false, is_changed: false };

/**
 * Marks starts as delivered, by one statement for all starts of a moment: no caller waits for a mark, and right after a
 * start the run itself needs the machine.
 * @param payloadKeys the ids of the keys; the first one has encrypted the start
 */
export function createStartMarks(db: Db, [payloadKey = '']: readonly string[]): MarkStart {
  let due: StartMark[] = [];
  let batch: Promise<ReadonlyMap<string, StartedRow>> | null = null;

  const write = async (): Promise<ReadonlyMap<string, StartedRow>> => {
    await new Promise((resolve) => setTimeout(resolve, momentMs));
    const marks = due;
    due = [];
    batch = null;
    const rows = await markStartsDelivered(db, marks, payloadKey);
    return new Map(rows.map((row) => [row.run_id, row]));
  };

  return async (mark) => {
    due.push(mark);
    batch ??= write();
    return (await batch).get(mark.run_id) ?? nothing;
  };
}
