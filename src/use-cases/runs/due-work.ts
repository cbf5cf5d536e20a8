/**
 * Does the due work that runs wait for. Four times a second it looks for steps whose wait is over, parents of ended
 * child runs, starts that steps and schedules have requested, turns, and requests of people that their own server could
 * not deliver. One cheap query finds out whether there is any. While calls wait in lines, it looks up to twenty times a
 * second: a slot stays idle until a call is called for it.
 *
 * A separate maintenance job wakes steps that wait for a capability when an instance could take a call.
 */

import { HostRooms } from '@capstan/core/hosts/host-rooms';
import { callTurns, mostMembers, Patience } from '@capstan/core/residency/keyed-line';
import type { KeyedFleet } from '@capstan/core/residency/residency';
import {
  ableFor,
  countCallable,
  hasRoom,
  isShort,
  type LineRoute,
  refusedAs,
  routeOfLine,
} from '@capstan/core/routing/call-line';
import { runWorkflowId } from '@capstan/core/workflow-names';
import type { Ctx, ServerCtx } from '../../context.ts';
import type { StepItemKey } from '../../db/attempt/attempt.ts';
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
import {
  callMembers,
  callNext,
  callProjects,
  hasCallable,
  type LineLength,
  readLines,
  readMembers,
} from '../../db/step/call-line.ts';
import { clearWake, listWakes, type WakeRow, wakeForCapabilities } from '../../db/step/step-wait.ts';
import {
  type DeliveryCount,
  type DeliveryCtx,
  type DeliveryKind,
  deliverDue,
  deliverEach,
  deliverSoon,
  deliveryBatch,
} from '../../parts/delivery/deliveries.ts';
import { runCancels, runControls, runStarts, toRunItems } from './delivery.ts';

const batch = 500;
/** The pause after a tick with a failed delivery. */
const pauseMs = 2_000;
/** How often it looks at lines for which no slot has become free. */
const quietMs = 250;

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

const works: Readonly<
  Record<Exclude<keyof DueWork, 'has_lines'>, (ctx: DeliveryCtx) => Promise<DeliveryCount>>
> = {
  has_turns: admitAll,
  has_starts: startOthers,
  has_wakes: (ctx) => deliverDue(ctx, wakes),
  has_parents: (ctx) => deliverDue(ctx, untoldParents),
  has_controls: (ctx) => deliverDue(ctx, runControls),
  has_cancels: (ctx) => deliverDue(ctx, runCancels),
};

/** Of a line, by step. A new leader begins with none. */
type StepPatience = Patience<string>;

type CallingCtx = Pick<ServerCtx, 'db' | 'fleet'>;

/** N5, W4, W5: its calls do not take any slot. @returns how many */
async function callByWish(
  { db, fleet }: CallingCtx,
  { line, route, known, awaited, called, since_turn_ms }: KnownLine,
  patience: StepPatience,
): Promise<number> {
  const nowMs = fleet.nowMs();
  const able = ableFor(route, known.instances, nowMs);
  const open = able.filter((one) => hasRoom(one) || isShort(one));
  const full = new Set(able.filter((one) => !open.includes(one)).map(({ instance_id }) => instance_id));
  const released = awaited.filter((id) => !full.has(id));
  if (open.length === 0 && released.length === 0) return 0;
  const members = await readMembers(db, {
    line,
    open: open.map(refusedAs),
    released,
    limit: mostMembers + called,
  });
  const waiting = members.map((member) => ({
    ...member,
    letGoMs: patience.letGoMs(nameOf(member), nowMs),
  }));
  const sinceTurnMs = (rank: number): number => since_turn_ms[rank] ?? Number.POSITIVE_INFINITY;
  const turns = callTurns(route, known, { members: waiting, nowMs, sinceTurnMs });
  patience.note(members.map(nameOf), turns.letting.map(nameOf), nowMs);
  if (turns.called.length === 0) return 0;
  return callMembers(
    db,
    line,
    turns.called.map(({ member, isPassing }) => ({ ...member, isPassing })),
  );
}

function nameOf({ run_id, step_id, item }: StepItemKey): string {
  return `${run_id} ${step_id} ${item}`;
}

/** N3: calls steps whose turn for a slot it is. @param patiences by line @returns how many */
async function callLines(ctx: CallingCtx, patiences: Map<string, StepPatience>): Promise<number> {
  const { db, fleet } = ctx;
  let sum = 0;
  const lines = (await readLines(db)).map((length) => {
    const route = routeOfLine(length.line);
    return { ...length, route, known: fleet.seenBy(route.scope ?? null).of(route.capability) };
  });
  const names = new Set(lines.map(({ line }) => line));
  for (const line of patiences.keys()) if (!names.has(line)) patiences.delete(line);
  const rooms = new HostRooms(lines);
  for (const [at, length] of lines.entries()) {
    const known = { ...length.known, instances: rooms.instancesOf(at) };
    const own = patiences.get(length.line) ?? new Patience<string>();
    patiences.set(length.line, own);
    const done = await callLine(ctx, { ...length, known }, own);
    if (done > 0) rooms.take(at, done);
    else if (rooms.isShort(at) && (await hasCallable(db, length.line))) rooms.keep(at);
    sum += done + (await callOwners(ctx, length));
  }
  return sum;
}

interface KnownLine extends LineLength {
  readonly route: LineRoute;
  readonly known: KeyedFleet;
}

/** @returns how many */
function callLine(ctx: CallingCtx, length: KnownLine, patience: StepPatience): Promise<number> {
  const { db, fleet } = ctx;
  const { line, route, known, waiting, called, has_keys, awaited } = length;
  const { instances } = known;
  // The last instance for the line serves other projects now: its calls find out their position.
  const isLeft = instances.length === 0 && fleet.all(route.capability).length > 0;
  if ((has_keys || awaited.length > 0) && !isLeft) return callByWish(ctx, length, patience);
  const room = isLeft ? waiting : countCallable(route, instances, { called, nowMs: fleet.nowMs() });
  const count = Math.min(room, waiting);
  return count > 0 ? callNext(db, line, count) : Promise.resolve(0);
}

/** Projects that have instances of their own now have lines of their own: their calls here find out. @returns how many */
function callOwners({ db, fleet }: CallingCtx, { line, route, waiting }: KnownLine): Promise<number> {
  const owners = (route.scope ?? null) === null && waiting > 0 ? fleet.ownersOf(route.capability) : [];
  return owners.length > 0 ? callProjects(db, line, owners) : Promise.resolve(0);
}

/** @returns a function that does the due work and returns its count; it pauses after a tick with a failed delivery */
export function createDueWork(ctx: DeliveryCtx & Pick<ServerCtx, 'fleet'>): () => Promise<number> {
  const { fleet } = ctx;
  let pausedUntil = 0;
  let nextAt = 0;
  let room = 0;
  const patiences = new Map<string, StepPatience>();
  const serveLines = async (): Promise<number> => {
    await fleet.refresh().catch(() => undefined); // the last known state serves
    const nowMs = performance.now();
    const before = room;
    room = fleet.roomInLines();
    if (nowMs < nextAt && room <= before) return 0;
    nextAt = nowMs + quietMs;
    return callLines(ctx, patiences);
  };
  return async () => {
    if (performance.now() < pausedUntil) return 0;
    const { has_lines, ...due } = await readDueWork(ctx.db);
    const called = has_lines ? await serveLines() : 0;
    const isDue = { ...due, has_wakes: due.has_wakes || called > 0 };
    const kinds = (Object.keys(works) as (keyof typeof works)[]).filter((kind) => isDue[kind]);
    const counts = await Promise.all(kinds.map((kind) => works[kind](ctx)));
    if (counts.some((count) => count.delivered < count.due)) pausedUntil = performance.now() + pauseMs;
    return counts.reduce((sum, { delivered }) => sum + delivered, 0);
  };
}

/** The rest is woken the next time. */
const atOnce = 1_000;

/** @returns how many it woke */
export function watchCapabilities({ db }: Pick<Ctx, 'db'>): Promise<number> {
  return wakeForCapabilities(db, atOnce);
}
