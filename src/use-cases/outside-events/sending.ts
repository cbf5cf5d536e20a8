/**
 * An outside event, from its sender to the steps that wait for it. The event, the ends of the steps and their wakes are
 * one transaction; Temporal receives the wakes from the rows of the steps, after it was away as well.
 */
import {
  type EventReceipt,
  type EventRequest,
  eventKeptMs,
  mostKeptEventBytes,
  mostKeptEvents,
} from '@capstan/core/contracts/outside-event';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { AppError } from '@capstan/core/errors/app-error';
import { summarizeFindings } from '@capstan/core/json/values';
import { describeEvent } from '@capstan/core/outside-events/rules';
import { SchemaRefused } from '@capstan/core/schemas/schema-compiler';
import type { SchemaError } from '@capstan/core/schemas/schema-errors';
import type { Ctx } from '../../context.ts';
import type { Db } from '../../db/connect.ts';
import {
  countUntaken,
  type EventWaitRow,
  findSentEvent,
  giveEvent,
  insertEvent,
  listEventWaits,
  lockEvent,
  type SentEvent,
  type SentEventRow,
} from '../../db/step/event-wait.ts';
import { newId } from '../../parts/ids.ts';
import { refuseForeign } from '../../parts/media/own-media.ts';

type SendingCtx = Pick<Ctx, 'db' | 'contexts' | 'validator' | 'ownMedia'>;

export async function findPayloadErrors(
  validator: Ctx['validator'],
  schema: JsonObject | undefined,
  payload: Json,
): Promise<readonly SchemaError[]> {
  if (schema === undefined) return [];
  try {
    return await validator.ofSchema(schema)(payload);
  } catch (error) {
    if (!(error instanceof SchemaRefused)) throw error;
    return [{ pointer: '', message: `cannot be checked: the schema of the step has ${error.message}` }];
  }
}

/** Equal steps of equal definitions have one schema. */
function nameForm({ digest, step_id }: EventWaitRow): string {
  return `${digest} ${step_id}`;
}

type Verdicts = Map<string, readonly SchemaError[]>;

/** Judges the payload by the schemas of the waiting steps, before any row is locked. */
async function judge(
  { contexts, validator }: SendingCtx,
  waits: readonly EventWaitRow[],
  { payload, verdicts }: { readonly payload: Json; readonly verdicts: Verdicts },
): Promise<void> {
  for (const wait of waits) {
    const form = nameForm(wait);
    if (verdicts.has(form)) continue;
    const { definition } = await contexts.open(wait.run_id);
    const { event } = definition.steps.find(({ id }) => id === wait.step_id) ?? {};
    verdicts.set(form, await findPayloadErrors(validator, event?.schema, payload));
  }
}

interface RefusedStep {
  readonly wait: EventWaitRow;
  readonly errors: readonly SchemaError[];
}

const mostShown = 10;

function showRefusal({ wait: { run_id, step_id, item }, errors }: RefusedStep) {
  return { run_id, step_id, ...(item === 0 ? {} : { item }), message: summarizeFindings(errors) };
}

/** V4 */
function refuse(event: SentEvent, [first]: readonly [RefusedStep, ...RefusedStep[]]): AppError {
  const { run_id, step_id } = first.wait;
  const seen = summarizeFindings(first.errors);
  const message = `the payload of ${describeEvent(event)} does not match the schema of step ${step_id} of run ${run_id}, which waits for it: ${seen}`;
  const errors = first.errors.map(({ pointer, message: fault }) => ({
    pointer: `/payload${pointer}`,
    code: 'schema_mismatch',
    message: fault,
  }));
  return new AppError('request_invalid', message, { errors });
}

interface GivenEvent {
  readonly row: SentEventRow;
  readonly refusals: readonly RefusedStep[];
  readonly repeated: boolean;
}

async function requireRoom(db: Db, projectId: string): Promise<void> {
  const { count, bytes } = await countUntaken(db, projectId);
  if (count <= mostKeptEvents && bytes <= mostKeptEventBytes) return;
  const kept = `${count - 1} events of ${bytes} bytes that no step has taken`;
  throw new AppError(
    'limit_reached',
    `the project keeps ${kept}; at most ${mostKeptEvents} events of ${mostKeptEventBytes} bytes are kept, for a day`,
  );
}

/** @throws NotJudged, AppError */
async function give(db: Db, event: SentEvent, verdicts: Verdicts): Promise<GivenEvent> {
  await lockEvent(db, event);
  const row = await insertEvent(db, event);
  if (row === undefined) {
    const first = await findSentEvent(db, event);
    if (first === undefined) throw new AppError('unavailable', 'an event of this id was deleted meanwhile');
    return { row: first, refusals: [], repeated: true };
  }
  const waits = await listEventWaits(db, event);
  if (waits.some((wait) => !verdicts.has(nameForm(wait)))) throw new NotJudged();
  const judged = waits.map((wait) => ({ wait, errors: verdicts.get(nameForm(wait)) ?? [] }));
  const [first, ...others] = judged.filter(({ errors }) => errors.length > 0);
  const takers = judged.filter(({ errors }) => errors.length === 0);
  if (first !== undefined && takers.length === 0) throw refuse(event, [first, ...others]);
  const waiting = await giveEvent(
    db,
    row.event_id,
    takers.map(({ wait }) => wait),
  );
  if (waiting === 0) await requireRoom(db, event.project_id);
  return {
    row: { ...row, waiting },
    refusals: first === undefined ? [] : [first, ...others],
    repeated: false,
  };
}

/** Reverts the event: a step began to wait whose schema is not judged yet. */
class NotJudged extends Error {
  override readonly name = 'NotJudged';
}

async function giveJudged(ctx: SendingCtx, event: SentEvent): Promise<GivenEvent> {
  const verdicts: Verdicts = new Map();
  for (;;) {
    await judge(ctx, await listEventWaits(ctx.db, event), { payload: event.payload, verdicts });
    try {
      return await ctx.db.transaction((trx) => give(trx, event, verdicts));
    } catch (error) {
      if (!(error instanceof NotJudged)) throw error;
    }
  }
}

export interface EventOrder {
  readonly project_id: string;
  readonly sent_by: string;
  readonly name: string;
  readonly request: EventRequest;
}

/** @throws AppError `request_invalid` where no waiting step takes the payload, `media_unknown`, `limit_reached` */
export async function sendEvent(
  ctx: SendingCtx,
  { project_id, sent_by, name, request }: EventOrder,
): Promise<EventReceipt> {
  const { key = '', id = null, payload } = request;
  const foreign = await ctx.ownMedia.findForeign(project_id, payload);
  if (foreign !== null) throw refuseForeign(foreign, '/payload');
  const event = { event_id: newId('event'), project_id, name, key, sender_id: id, payload, sent_by };
  const { row, refusals, repeated } = await giveJudged(ctx, event);
  return {
    event_id: row.event_id,
    name,
    key: row.key === '' ? null : row.key,
    waiting: row.waiting,
    refused_by: refusals.slice(0, mostShown).map(showRefusal),
    repeated,
    kept_until: new Date(row.created_at.getTime() + eventKeptMs).toISOString(),
  };
}
