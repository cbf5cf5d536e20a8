/**
 * Writes items to the database in micro-batches: what arrives in one turn of the event loop goes out together, and what
 * arrives while a statement is under way waits for its end. So a lone caller waits for nobody, and the busier it gets
 * the larger the batches are. A patient item is taken along by the next one, or goes alone after `patienceMs`. A batch
 * that fails for one of its items is repeated singly, so that one bad item does not take the others with it.
 */
export interface BatchWriterOptions<Item, Result> {
  /** @returns one result per item, in order */
  readonly send: (items: readonly Item[]) => Promise<readonly Result[]>;
  readonly maxItems: number;
  readonly patienceMs: number;
  /** Whether an item may be the reason; otherwise all of the batch fail. */
  readonly isItemsFault: (error: unknown) => boolean;
}

export interface BatchWriter<Item, Result> {
  push(item: Item, isPatient?: boolean): Promise<Result>;
}

interface QueuedItem<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

export function createBatchWriter<Item, Result>({
  send,
  maxItems,
  patienceMs,
  isItemsFault,
}: BatchWriterOptions<Item, Result>): BatchWriter<Item, Result> {
  const queue: QueuedItem<Item, Result>[] = [];
  let isBusy = false;
  let patience: NodeJS.Timeout | null = null;

  /** @returns tells those who wait how it went */
  const write = async (batch: readonly QueuedItem<Item, Result>[]): Promise<() => void> => {
    try {
      const results = await send(batch.map(({ item }) => item));
      return () => {
        for (const [at, { resolve }] of batch.entries()) resolve(results[at] as Result);
      };
    } catch (error) {
      if (batch.length > 1 && isItemsFault(error)) return writeSingly(batch);
      return () => {
        for (const { reject } of batch) reject(error);
      };
    }
  };

  const writeSingly = async (batch: readonly QueuedItem<Item, Result>[]): Promise<() => void> => {
    for (const one of batch) (await write([one]))();
    return () => undefined;
  };

  const work = async (): Promise<void> => {
    let tell = (): void => undefined;
    while (queue.length > 0) {
      const written = write(queue.splice(0, maxItems));
      setImmediate(tell); // when the next is on its way: the database works while the last go on
      tell = await written;
    }
    isBusy = false;
    tell();
  };

  const start = (): void => {
    if (patience !== null) clearTimeout(patience);
    patience = null;
    if (isBusy) return;
    isBusy = true;
    setImmediate(work);
  };

  return {
    push: (item, isPatient = false) =>
      new Promise((resolve, reject) => {
        queue.push({ item, resolve, reject });
        if (!isPatient) start();
        else if (!isBusy) patience ??= setTimeout(start, patienceMs);
      }),
  };
}
