/**
 * What a row says and somebody has to be told. The process that wrote the row tells it in the background; maintenance
 * repeats what a crash, or Temporal's absence, left undone. One that cannot be delivered does not hold up the others.
 */
import type { Logger } from 'pino';

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
