/**
 * Outside events and the steps that wait for them (V1 to V4, core/outside-events/rules.ts). A sender and a step that
 * begins to wait take the lock `outside_event` of the name and key first, so neither misses the other. The end of a
 * step and its wake are written with the event.
 */
import { type AwaitedEvent, eventKeptMs } from '@capstan/core/contracts/outside-event';
import type { Json } from '@capstan/core/contracts/primitives';

import type { StepItemKey, StepKey } from '../attempt/attempt.ts';
import type { Db } from '../connect.ts';
import { takeLock } from '../locks.ts';
import { purgeOld, query, toJson } from '../statements.ts';

/** An event of a project. */
export interface ProjectEvent extends AwaitedEvent {
  readonly project_id: string;
}

/** As `step.awaited_event` names it. */
export function nameAwaited(projectId: string, name: string): string {
  return `${projectId}/${name}`;
}

export function lockEvent(trx: Db, { project_id, name, key }: ProjectEvent): Promise<void> {
  return takeLock(trx, 'outside_event', project_id, name, key);
}

const isKept = `created_at > clock_timestamp() - interval '${eventKeptMs} milliseconds'`;

export interface EventWaitRow extends StepItemKey {
  /** The digest of its run's definition. */
  readonly digest: string;
}

/** Lists the steps that wait for an event, and whose time is not over. */
export function listEventWaits(
  db: Db,
  { project_id, name, key }: ProjectEvent,
): Promise<readonly EventWaitRow[]> {
  return query<EventWaitRow>(db).all(
    `select s.run_id, s.step_id, s.item, r.digest from step s join run r using (run_id)
     where s.awaited_event = ? and s.awaited_key = ? and s.state = 'waiting' and s.awaiting = 'event'
       and s.wait_until > clock_timestamp()
     order by s.run_id, s.step_id, s.item`,
    [nameAwaited(project_id, name), key],
  );
}

export interface SentEvent extends ProjectEvent {
  readonly event_id: string;
  readonly sender_id: string | null;
  readonly payload: Json;
  readonly sent_by: string;
}

export interface SentEventRow extends Pick<SentEvent, 'event_id' | 'key'> {
  readonly waiting: number;
  readonly created_at: Date;
}

const eventColumns = 'event_id, key, waiting, created_at';

/** @returns undefined if an event of this sender's id was sent before; it is read in another statement */
export function insertEvent(trx: Db, event: SentEvent): Promise<SentEventRow | undefined> {
  const { payload, ...row } = event;
  const text = toJson(payload);
  return query<SentEventRow>(trx).first(
    `insert into outside_event (event_id, project_id, name, key, sender_id, payload, bytes, sent_by)
     values (:event_id, :project_id, :name, :key, :sender_id, cast(:text as json), :bytes, :sent_by)
     on conflict (project_id, name, sender_id) where sender_id is not null do nothing returning ${eventColumns}`,
    { ...row, text, bytes: Buffer.byteLength(text) },
  );
}

export function findSentEvent(
  db: Db,
  { project_id, name, sender_id }: Pick<SentEvent, 'project_id' | 'name' | 'sender_id'>,
): Promise<SentEventRow | undefined> {
  return query<SentEventRow>(db).first(
    `select ${eventColumns} from outside_event where project_id = ? and name = ? and sender_id = ?`,
    [project_id, name, sender_id],
  );
}

export interface KeptEvents {
  readonly count: number;
  readonly bytes: number;
}

/** The kept events of a project that no step has taken. */
export function countUntaken(db: Db, projectId: string): Promise<KeptEvents> {
  return query<KeptEvents>(db).one(
    `select count(*)::int as count, coalesce(sum(bytes), 0)::float8 as bytes from outside_event
     where project_id = ? and not is_taken`,
    [projectId],
  );
}

/**
 * Ends the steps that still wait with the payload of the event, and asks for their wakes.
 * @returns how many
 */
export async function giveEvent(trx: Db, eventId: string, units: readonly StepItemKey[]): Promise<number> {
  if (units.length === 0) return 0;
  const row = await query<{ waiting: number }>(trx).one(
    `with due as (
       select s.run_id, s.step_id, s.item from step s
       join unnest(:runIds::text[], :stepIds::text[], :items::int[]) u (run_id, step_id, item)
         on s.run_id = u.run_id and s.step_id = u.step_id and s.item = u.item
       where s.state = 'waiting' and s.awaiting = 'event' and s.wait_until > clock_timestamp()
       order by s.run_id, s.step_id, s.item for update of s
     ), ended as (
       update step s set state = 'succeeded', output = e.payload, error = null, received_event = e.event_id,
         finished_at = clock_timestamp(), awaiting = null, wait_since = null, wait_until = null, awaited_event = null,
         awaited_key = null, wake_requested_at = clock_timestamp()
       from due, outside_event e
       where e.event_id = :eventId and s.run_id = due.run_id and s.step_id = due.step_id and s.item = due.item
       returning s.run_id, s.step_id, s.item
     ), logged as (
       insert into event (run_id, type, step_id, item, data)
       select run_id, 'step.succeeded', step_id, nullif(item, 0), jsonb_build_object('event_id', cast(:eventId as text))
       from ended order by run_id, step_id, item
     ), counted as (select count(*)::int as waiting from ended)
     update outside_event e set waiting = c.waiting, is_taken = c.waiting > 0 from counted c
     where e.event_id = :eventId returning e.waiting`,
    {
      eventId,
      runIds: units.map(({ run_id }) => run_id),
      stepIds: units.map(({ step_id }) => step_id),
      items: units.map(({ item }) => item),
    },
  );
  return row.waiting;
}

export interface KeptEvent {
  readonly event_id: string;
  readonly payload: Json;
}

/** A step takes the first of so many kept events that matches its schema. */
const mostExamined = 100;

/** V2 and V3. @param before the steps before it in its run */
export function listKeptEvents(
  db: Db,
  { project_id, name, key }: ProjectEvent,
  { run_id, before }: { readonly run_id: string; readonly before: readonly string[] },
): Promise<readonly KeptEvent[]> {
  return query<KeptEvent>(db).all(
    `select e.event_id, e.payload from outside_event e join run r on r.run_id = :run_id
     where e.project_id = :project_id and e.name = :name and e.key = :key and e.${isKept}
       and (not e.is_taken or e.created_at >= r.created_at)
       and not exists (select from step s where s.run_id = r.run_id and s.step_id = any (cast(:before as text[]))
         and s.received_event = e.event_id)
     order by e.created_at, e.event_id limit ${mostExamined}`,
    { run_id, project_id, name, key, before: [...before] },
  );
}

/** Begins and ends a step with a kept event. @returns false if the step had begun, or its run has ended */
export function takeKeptEvent(trx: Db, step: StepKey, eventId: string): Promise<boolean> {
  const { run_id, step_id, item, revision } = step;
  return query(trx).some(
    `with stored as (
       insert into step (run_id, step_id, item, revision, state, output, received_event, started_at, finished_at)
       select :run_id, :step_id, :item, :revision, 'succeeded', payload, event_id, clock_timestamp(), clock_timestamp()
       from outside_event where event_id = :eventId
         and not exists (select from run where run_id = :run_id and finished_at is not null)
       on conflict do nothing returning run_id, step_id, item
     ), taken as (
       update outside_event set is_taken = true where event_id = :eventId and exists (select from stored)
     )
     insert into event (run_id, type, step_id, item, data)
     select run_id, type, step_id, nullif(item, 0), data from stored cross join lateral (values
       (1, 'step.started', '{}'::jsonb),
       (2, 'step.succeeded', jsonb_build_object('event_id', cast(:eventId as text)))
     ) told (at, type, data) order by at returning 1`,
    { run_id, step_id, item, revision, eventId },
  );
}

/** Deletes events that are kept no longer. @returns how many */
export function purgeEvents(db: Db): Promise<number> {
  return purgeOld(db, { table: 'outside_event', hours: eventKeptMs / 3_600_000 });
}
