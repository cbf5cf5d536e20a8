/**
 * Delivers what a row says to the system that has to know it. The process that wrote the row delivers in the
 * background; maintenance repeats what a crash, or Temporal's absence, left undone. An item that cannot be
 * delivered does not hold up the others. Workflows that Temporal has forgotten are delivered again.
 */
import type { Logger } from 'pino';
import type { Db } from '../../db/connect.ts';

/** Whoever wrote a row delivers it within this time, or never does: maintenance looks for what is older. */
export const overdueMs = 3_000;

export interface Deliveries<Item> {
  /**
   * In the background; a failure is left to maintenance, and so is what finds the line too long. Resolves when it was tried, which nobody has to wait for.
   * @param way of delivering it, where more is known of it than the item says
   */
  soon(item: Item, way?: (item: Item) => Promise<void>): Promise<void>;
  /** @returns how many were delivered */
  each(items: readonly Item[]): Promise<number>;
  /** Resolves when nothing is under way in the background. */
  settled(): Promise<void>;
}

/** How many wait in line, and how many of them with what is known of them: a definition may have megabytes. */
const longestLine = 1_000;
const mostKnown = 100;

export function createDeliveries<Item extends object>({
  what,
  deliver,
  logger,
  atOnce = 32,
}: {
  /** `a decision`, for the log; the item is logged beside it. */
  readonly what: string;
  readonly deliver: (item: Item) => Promise<void>;
  readonly logger: Logger;
  /** The others wait in line, so that a thousand at once do not outlast the time that each has. */
  readonly atOnce?: number;
}): Deliveries<Item> {
  const underWay = new Set<Promise<void>>();
  const line: (() => void)[] = [];
  let free = atOnce;

  const deliverInTurn = async (item: Item, way: (item: Item) => Promise<void> = deliver): Promise<void> => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => line.push(resolve));
    try {
      await way(item);
    } finally {
      const next = line.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };

  const warn = (item: Item, error: unknown): void => {
    const facts: object = { err: error, ...item };
    logger.warn(facts, `${what} was not delivered yet`);
  };

  return {
    soon: (item, known) => {
      if (line.length >= longestLine) return Promise.resolve();
      const way = line.length < mostKnown ? known : undefined;
      const task = deliverInTurn(item, way)
        .catch((error: unknown) => warn(item, error))
        .finally(() => underWay.delete(task));
      underWay.add(task);
      return task;
    },
    each: async (items) => {
      const ends = await Promise.all(
        items.map((item) =>
          deliverInTurn(item).then(
            () => true,
            (error: unknown) => {
              warn(item, error);
              return false;
            },
          ),
        ),
      );
      return ends.filter((isDelivered) => isDelivered).length;
    },
    settled: async () => {
      await Promise.all(underWay);
    },
  };
}

interface DeliveredPage {
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

/**
 * Starts workflows again that are open here and of which Temporal knows nothing: its data was lost, or an older state of it
 * restored. Rows hold all that they need to go on. One query lists what runs there; whom it does not name is asked for,
 * because it may lag behind. 0 in steady state.
 */
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
