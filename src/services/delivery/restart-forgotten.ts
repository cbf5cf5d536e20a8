/**
 * Starts workflows again that are open here and of which Temporal knows nothing: its data was lost, or an older state of it
 * restored. Rows hold all that they need to go on. One query lists what runs there; whom it does not name is asked for,
 * because it may lag behind. 0 in steady state.
 */
import type { Logger } from 'pino';
import type { Db } from '../../db/connect.ts';

export interface DeliveredPage {
  /** By id, after this one. */
  readonly after: string;
  readonly olderThanMs: number;
  readonly limit: number;
}

/** Rows whose workflows may be forgotten, and how to look at them. */
export interface Forgettable<Row> {
  /** For the log. */
  readonly what: string;
  readonly idOf: (row: Row) => string;
  /** Those that are open and whose start Temporal took so long ago. */
  readonly list: (db: Db, page: DeliveredPage) => Promise<readonly Row[]>;
  /** Ids, as far as the visibility store knows. */
  readonly listRunning: () => AsyncIterable<string>;
  readonly isForgotten: (row: Row) => Promise<boolean>;
  /** Its start is to be delivered again; false when it has ended. */
  readonly forgetStart: (db: Db, id: string) => Promise<boolean>;
  readonly startSoon: (id: string) => void;
  /** Told of each row that is left alone. @param isListed by `listRunning` */
  readonly onKnown?: (row: Row, isListed: boolean) => Promise<void>;
  /** Resolves when the starts of a page of rows are delivered, where the next page is to wait for that. */
  readonly settled?: () => Promise<void>;
}

/** A start that was delivered just now may not be listed yet. */
const settledMs = 60_000;
const batch = 1_000;

/** @returns how many it starts again; what began as lately as `olderThanMs` is left alone */
export type RestartForgotten = (olderThanMs?: number) => Promise<number>;

export function createRestartForgotten<Row>(
  db: Db,
  logger: Logger,
  kind: Forgettable<Row>,
): RestartForgotten {
  const restart = async (row: Row, running: ReadonlySet<string>): Promise<boolean> => {
    const id = kind.idOf(row);
    if (running.has(id) || !(await kind.isForgotten(row))) {
      await kind.onKnown?.(row, running.has(id));
      return false;
    }
    if (!(await kind.forgetStart(db, id))) return false;
    logger.warn({ id }, `Temporal had forgotten the workflow of ${kind.what}; it is started again`);
    kind.startSoon(id);
    return true;
  };
  return async (olderThanMs = settledMs) => {
    const listAfter = (after: string) => kind.list(db, { after, olderThanMs, limit: batch });
    let rows = await listAfter('');
    if (rows.length === 0) return 0;
    const running = new Set<string>();
    for await (const id of kind.listRunning()) running.add(id);
    let restarted = 0;
    while (rows.length > 0) {
      for (const row of rows) if (await restart(row, running)) restarted += 1;
      await kind.settled?.();
      const last = rows.at(-1);
      rows = last === undefined ? [] : await listAfter(kind.idOf(last));
    }
    return restarted;
  };
}
