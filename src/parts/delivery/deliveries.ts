/**
 * Delivers the content of a row to Temporal. The process that wrote the row delivers in the background; maintenance
 * repeats deliveries that a crash, or Temporal's absence, prevented. A failed delivery does not delay others. Workflows
 * that Temporal has forgotten are delivered again.
 *
 * Each kind of row is one declaration, beside the service that writes it; this engine serves them all.
 */

import type { FreezeClock } from '@capstan/core/call/freezes';
import pLimit, { type LimitFunction } from 'p-limit';
import type { RunWorkflows } from '../../clients/temporal/run-workflows.ts';
import type { TemporalSchedules } from '../../clients/temporal/schedules.ts';
import type { Config } from '../../config.ts';
import type { Db } from '../../db/connect.ts';
import type { DeliveredPage } from '../../db/statements.ts';
import type { PartBase } from '../part.ts';
import type { MarkStart } from './start-marks.ts';

/** The process that wrote a row delivers it within this time, or not at all: maintenance looks for older rows. */
export const overdueMs = 3_000;
/** How many rows of a kind a maintenance tick delivers. */
export const deliveryBatch = 200;

/** The server's clients of Temporal. */
export interface TemporalParts {
  readonly workflows: RunWorkflows;
  readonly schedules: TemporalSchedules;
  readonly namespace: string;
  /** The ids of the keys that decrypt payloads; the first one encrypts. None: payloads are not encrypted. */
  readonly payloadKeys: readonly string[];
}

/** The parts of a server that deliveries need. */
export interface DeliveryCtx extends PartBase {
  readonly freezes: FreezeClock;
  readonly outbox: Outbox;
  readonly markStart: MarkStart;
  readonly publicUrl: () => string;
  readonly consoleUrl: () => string;
  readonly config: Pick<Config, 'HEARTBEAT_TIMEOUT_MS' | 'LEASE_MS' | 'ENGINE_VERSION' | 'HISTORY_EVENTS'>;
  readonly temporal: Pick<TemporalParts, 'workflows' | 'schedules' | 'payloadKeys'>;
}

/** Finds rows whose workflow Temporal has forgotten after it accepted the start. */
export interface Forgotten<Item extends object, Row extends object> {
  /** For the log. */
  readonly what: string;
  idOf(row: Row): string;
  itemOf(id: string): Item;
  /** Open rows whose start Temporal accepted that long ago. */
  list(db: Db, page: DeliveredPage): Promise<readonly Row[]>;
  /** Ids of running workflows, as the visibility store knows them. */
  listRunning(ctx: DeliveryCtx): AsyncIterable<string>;
  isForgotten(ctx: DeliveryCtx, row: Row): Promise<boolean>;
  /** Marks the start for delivery again; false when the row has ended. */
  forgetStart(db: Db, id: string): Promise<boolean>;
}

/** A kind of row that must reach Temporal. */
export interface DeliveryKind<Item extends object, Row extends object = object> {
  /** `a decision`, for the log; the item is logged beside it. */
  readonly what: string;
  /** The items that maintenance has to deliver. */
  due(ctx: DeliveryCtx): Promise<readonly Item[]>;
  /** Delivers the current row, and marks this state, not a newer one, as delivered. */
  deliver(ctx: DeliveryCtx, item: Item): Promise<void>;
  /** The most deliveries in parallel; others queue, so that each keeps within its own time limit. Default 32. */
  readonly atOnce?: number;
  /** Absent: nothing is delivered again when Temporal forgets it. */
  readonly forgotten?: Forgotten<Item, Row>;
}

/** Delivers the items of a kind in turn: the queue, and the deliveries in flight. */
interface DeliveryQueue {
  readonly inTurn: LimitFunction;
  readonly underWay: Set<Promise<unknown>>;
}

/** Why one attempt to deliver an item failed; null: it was delivered. Maintenance tries again. */
type AttemptFault = Error | null;

/** The deliveries in flight in this process, by kind. */
export type Outbox = Map<object, DeliveryQueue>;

/** The longest queue, and how many of its items carry their known data: a definition may have megabytes. */
const longestLine = 1_000;
const mostKnown = 100;

function queueOf({ outbox }: DeliveryCtx, delivery: Pick<DeliveryKind<object>, 'atOnce'>): DeliveryQueue {
  const known = outbox.get(delivery);
  if (known !== undefined) return known;
  const queue = { inTurn: pLimit(delivery.atOnce ?? 32), underWay: new Set<Promise<unknown>>() };
  outbox.set(delivery, queue);
  return queue;
}

/** @returns a function that logs that an item is left to maintenance, and returns why */
function warnOf({ logger }: DeliveryCtx, what: string, item: object): (error: unknown) => Error {
  return (error) => {
    const facts: object = { err: error, ...item };
    logger.warn(facts, `${what} was not delivered yet`);
    return error instanceof Error ? error : new Error(String(error));
  };
}

interface KnownItem<Item> {
  readonly item: Item;
  /** Delivers it with known data beyond the item. */
  readonly way: (() => Promise<void>) | undefined;
}

/** Like `deliverSoon`, with known data about the item, which the engine may drop when the queue is long. */
export function deliverKnownSoon<Item extends object>(
  ctx: DeliveryCtx,
  delivery: DeliveryKind<Item>,
  { item, way }: KnownItem<Item>,
): Promise<AttemptFault> {
  const queue = queueOf(ctx, delivery);
  if (queue.inTurn.pendingCount >= longestLine) return Promise.resolve(new Error('the queue is full'));
  const known = queue.inTurn.pendingCount < mostKnown ? way : undefined;
  const task = queue
    .inTurn(known ?? (() => delivery.deliver(ctx, item)))
    .then(() => null, warnOf(ctx, delivery.what, item))
    .finally(() => queue.underWay.delete(task));
  queue.underWay.add(task);
  return task;
}

/**
 * Delivers in the background and resolves after one attempt, for which no caller has to wait. Maintenance retries a
 * failure, and delivers an item that finds the queue too long.
 */
export function deliverSoon<Item extends object>(
  ctx: DeliveryCtx,
  delivery: DeliveryKind<Item>,
  item: Item,
): Promise<AttemptFault> {
  return deliverKnownSoon(ctx, delivery, { item, way: undefined });
}

export interface DeliveryCount {
  readonly due: number;
  readonly delivered: number;
}

export async function deliverEach<Item extends object>(
  ctx: DeliveryCtx,
  delivery: DeliveryKind<Item>,
  items: readonly Item[],
): Promise<DeliveryCount> {
  const queue = queueOf(ctx, delivery);
  let delivered = 0;
  const tasks = items.map((item) =>
    queue.inTurn(() => delivery.deliver(ctx, item)).then(() => delivered++, warnOf(ctx, delivery.what, item)),
  );
  await Promise.all(tasks);
  return { due: items.length, delivered };
}

/** Repeats deliveries that a crash or Temporal's absence prevented. */
export async function deliverDue<Item extends object>(
  ctx: DeliveryCtx,
  delivery: DeliveryKind<Item>,
): Promise<DeliveryCount> {
  return deliverEach(ctx, delivery, await delivery.due(ctx));
}

/** Resolves when no background delivery is in flight. */
export async function settleDeliveries({ outbox }: Pick<DeliveryCtx, 'outbox'>): Promise<void> {
  await Promise.all([...outbox.values()].flatMap(({ underWay }) => [...underWay]));
}

interface ForgottenLook<Row> {
  /** Younger rows are skipped: a recently delivered start may not be listed yet. Default a minute. */
  readonly olderThanMs?: number;
  /** Called with each row that is skipped. @param isListed by `listRunning` */
  readonly onKnown?: (row: Row, isListed: boolean) => Promise<void>;
  /**
   * Called with each start that failed. If it is given, the next page of rows, and the caller, wait until the starts of
   * this one have been attempted.
   */
  readonly onFailed?: (id: string, fault: Error) => void;
}

const settledMs = 60_000;
const pageSize = 1_000;

/** Marks its start for delivery again; false when it has ended. */
async function isStartForgotten<Item extends object, Row extends object>(
  { db, logger }: DeliveryCtx,
  { what, forgetStart }: Forgotten<Item, Row>,
  id: string,
): Promise<boolean> {
  const isOpen = await forgetStart(db, id);
  if (isOpen) logger.warn({ id }, `Temporal had forgotten the workflow of ${what}; it is started again`);
  return isOpen;
}

/**
 * Starts workflows again that are open here and that Temporal has forgotten: its data was lost, or an older state was
 * restored. Rows hold everything that they need to continue. One query lists the running workflows; a workflow that is
 * missing from it is looked up, because the list may lag behind. 0 in steady state.
 * @returns how many it tries to start again
 */
export async function restartForgotten<Item extends object, Row extends object>(
  ctx: DeliveryCtx,
  delivery: DeliveryKind<Item, Row>,
  { olderThanMs = settledMs, onKnown, onFailed }: ForgottenLook<Row> = {},
): Promise<number> {
  const { forgotten } = delivery;
  let rows = (await forgotten?.list(ctx.db, { after: '', olderThanMs, limit: pageSize })) ?? [];
  if (forgotten === undefined || rows.length === 0) return 0;
  const running = new Set<string>();
  for await (const id of forgotten.listRunning(ctx)) running.add(id);
  let restarted = 0;
  while (rows.length > 0) {
    const attempts: Promise<unknown>[] = [];
    for (const row of rows) {
      const id = forgotten.idOf(row);
      const isListed = running.has(id);
      if (isListed || !(await forgotten.isForgotten(ctx, row))) await onKnown?.(row, isListed);
      else if (await isStartForgotten(ctx, forgotten, id)) {
        restarted += 1;
        const attempt = deliverSoon(ctx, delivery, forgotten.itemOf(id));
        attempts.push(attempt.then((fault) => fault !== null && onFailed?.(id, fault)));
      }
    }
    if (onFailed !== undefined) await Promise.all(attempts);
    const after = forgotten.idOf(rows.at(-1) as Row);
    rows = await forgotten.list(ctx.db, { after, olderThanMs, limit: pageSize });
  }
  return restarted;
}
