/**
 * What a row says and somebody has to be told. The process that wrote the row tells it in the background; maintenance
 * repeats what a crash, or Temporal's absence, left undone. One that cannot be delivered does not hold up the others.
 */
import type { Logger } from 'pino';

export interface Deliveries<Item> {
  /** In the background; a failure is left to maintenance. */
  soon(item: Item): void;
  /** @returns how many were delivered */
  each(items: readonly Item[]): Promise<number>;
  /** Resolves when nothing is under way in the background. */
  settled(): Promise<void>;
}

export const createDeliveries = <Item extends object>({
  what,
  deliver,
  logger,
}: {
  /** `a decision`, for the log; the item is logged beside it. */
  readonly what: string;
  readonly deliver: (item: Item) => Promise<void>;
  readonly logger: Logger;
}): Deliveries<Item> => {
  const underWay = new Set<Promise<void>>();
  const warn = (item: Item, error: unknown): void => {
    const facts: object = { err: error, ...item };
    logger.warn(facts, `${what} was not delivered yet`);
  };

  return {
    soon: (item) => {
      const task = deliver(item)
        .catch((error: unknown) => warn(item, error))
        .finally(() => underWay.delete(task));
      underWay.add(task);
    },
    each: async (items) => {
      let delivered = 0;
      for (const item of items) {
        try {
          await deliver(item);
          delivered += 1;
        } catch (error) {
          warn(item, error);
        }
      }
      return delivered;
    },
    settled: async () => {
      await Promise.all(underWay);
    },
  };
};
