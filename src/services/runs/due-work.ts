/**
 * Does what runs wait for and cannot do themselves. Four times a second it looks for steps whose wait is over,
 * starters whose run has ended, starts that steps and schedules have asked for, turns, and requests of people that
 * their own server could not deliver. One cheap query says whether there is anything at all.
 *
 * A duty of its own wakes steps that wait for a capability which now has an instance that could take a call.
 */
import { runWorkflowId } from '../../core/workflow-names.ts';
import {
  admitRuns,
  type ConcurrencyKey,
  listAdmissibleKeys,
  lockAdmission,
} from '../../db/run/run-admission.ts';
import {
  type DueWork,
  listStartedByOthers,
  listUntoldParents,
  markParentTold,
  readDueWork,
  type UntoldRow,
} from '../../db/run/run-delivery.ts';
import { clearWake, listWakes, type WakeRow, wakeForCapabilities } from '../../db/step/step-wait.ts';
import type { Ctx } from '../context.ts';
import {
  type DeliveryCount,
  type DeliveryCtx,
  type DeliveryKind,
  deliverDue,
  deliverEach,
  deliverSoon,
  deliveryBatch,
} from '../delivery/deliveries.ts';
import { runCancels, runControls, runStarts, toRunItems } from './delivery.ts';

const batch = 500;
/** After a round in which something could not be delivered. */
const pauseMs = 2_000;

const wakes: DeliveryKind<WakeRow> = {
  what: 'the end of a wait',
  due: ({ db }) => listWakes(db, batch),
  deliver: async ({ db, temporal }, row) => {
    const { step_id, item } = row;
    await temporal.workflows.signalWoken(runWorkflowId(row), { step_id, item });
    await clearWake(db, row);
  },
};

const untoldParents: DeliveryKind<UntoldRow> = {
  what: 'the end of a run',
  due: ({ db }) => listUntoldParents(db, batch),
  deliver: async ({ db, temporal }, { run_id, parent_workflow_id, parent_step_id, parent_item }) => {
    await temporal.workflows.signalWoken(parent_workflow_id, {
      step_id: parent_step_id ?? '',
      item: parent_item ?? 0,
    });
    await markParentTold(db, run_id);
  },
};

async function admit(ctx: DeliveryCtx, key: ConcurrencyKey): Promise<number> {
  const admitted = await ctx.db.transaction(async (trx) => {
    await lockAdmission(trx, key);
    return admitRuns(trx, key, batch);
  });
  for (const run_id of admitted) void deliverSoon(ctx, runStarts, { run_id });
  return admitted.length;
}

async function admitAll(ctx: DeliveryCtx): Promise<DeliveryCount> {
  let admitted = 0;
  for (const key of await listAdmissibleKeys(ctx.db, batch)) admitted += await admit(ctx, key);
  return { due: admitted, delivered: admitted };
}

async function startOthers(ctx: DeliveryCtx): Promise<DeliveryCount> {
  return deliverEach(ctx, runStarts, toRunItems(await listStartedByOthers(ctx.db, deliveryBatch)));
}

const works: Readonly<Record<keyof DueWork, (ctx: DeliveryCtx) => Promise<DeliveryCount>>> = {
  has_turns: admitAll,
  has_starts: startOthers,
  has_wakes: (ctx) => deliverDue(ctx, wakes),
  has_parents: (ctx) => deliverDue(ctx, untoldParents),
  has_controls: (ctx) => deliverDue(ctx, runControls),
  has_cancels: (ctx) => deliverDue(ctx, runCancels),
};

/** @returns what does what is due, and says how much that was; it rests after a round that did not get through */
export function createDueWork(ctx: DeliveryCtx): () => Promise<number> {
  let pausedUntil = 0;
  return async () => {
    if (performance.now() < pausedUntil) return 0;
    const due = await readDueWork(ctx.db);
    const kinds = (Object.keys(works) as (keyof DueWork)[]).filter((kind) => due[kind]);
    const counts = await Promise.all(kinds.map((kind) => works[kind](ctx)));
    if (counts.some((count) => count.delivered < count.due)) pausedUntil = performance.now() + pauseMs;
    return counts.reduce((sum, { delivered }) => sum + delivered, 0);
  };
}

/** The others are woken the next time. */
const atOnce = 1_000;

/** @returns how many it woke */
export function watchCapabilities({ db }: Pick<Ctx, 'db'>): Promise<number> {
  return wakeForCapabilities(db, atOnce);
}
