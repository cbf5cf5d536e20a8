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

  const sendTogether = async (batch: readonly QueuedItem<Item, Result>[]): Promise<void> => {
    const results = await send(batch.map(({ item }) => item));
    for (const [at, { resolve }] of batch.entries()) resolve(results[at] as Result);
  };

  const work = async (): Promise<void> => {
    while (queue.length > 0) {
      const batch = queue.splice(0, maxItems);
      try {
        await sendTogether(batch);
      } catch (error) {
        if (batch.length === 1 || !isItemsFault(error)) for (const { reject } of batch) reject(error);
        else for (const one of batch) await sendTogether([one]).catch(one.reject);
      }
    }
    isBusy = false;
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
