/** A step that waits for an outside event: the payload is its output (V1 to V4, core/outside-events/rules.ts). */
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { parseDuration } from '@capstan/core/duration';
import { endWithoutEvent, eventTimeoutOf, listStepsBefore } from '@capstan/core/outside-events/rules';
import type { StepExecution, WaitingStep } from '@capstan/core/workflow-payloads';
import type { Ctx } from '../../context.ts';
import type { Db } from '../../db/connect.ts';
import { listKeptEvents, lockEvent, type ProjectEvent, takeKeptEvent } from '../../db/step/event-wait.ts';
import type { StoredStep } from '../../db/step/step.ts';
import { answerStep, keepWaiting } from '../../db/step/step-progress.ts';
import { findPayloadErrors } from '../outside-events/sending.ts';
import { resolveEventKey, type StepUnit } from '../run-data/evaluation.ts';
import { failStep, readEnd } from './step-end.ts';

type Execution = StepExecution | WaitingStep;
type EventCtx = Pick<Ctx, 'db' | 'results' | 'validator'>;

export async function executeEvent(
  { db, results, validator }: EventCtx,
  unit: StepUnit,
  stored: StoredStep | undefined,
): Promise<Execution> {
  const { context, step, key } = unit;
  const { name = '', schema } = step.definition.event ?? {};
  const found = await resolveEventKey({ context, results }, step, key.item);
  if ('error' in found) return failStep(db, key, found.error);
  const event = { project_id: context.project_id, name, key: found.value };
  if (stored !== undefined) return followWait(db, unit, { event, stored });
  const accepts = async (payload: Json): Promise<boolean> =>
    (await findPayloadErrors(validator, schema, payload)).length === 0;
  const waiting = await db.transaction((trx) => beginWait(trx, unit, { event, accepts }));
  return waiting ?? readEnd(db, key);
}

interface NewEventWait {
  readonly event: ProjectEvent;
  readonly accepts: (payload: Json) => Promise<boolean>;
}

/** @returns null if the step has ended: a kept event is its output, or its run has ended */
async function beginWait(
  trx: Db,
  unit: StepUnit,
  { event, accepts }: NewEventWait,
): Promise<WaitingStep | null> {
  const { context, step, key } = unit;
  await lockEvent(trx, event);
  const before = listStepsBefore(context.compiled, key.step_id);
  for (const kept of await listKeptEvents(trx, event, { run_id: key.run_id, before })) {
    if (!(await accepts(kept.payload))) continue;
    await takeKeptEvent(trx, key, kept.event_id);
    return null;
  }
  const held = await keepWaiting(trx, key, {
    awaiting: 'event',
    until: null,
    for_ms: parseDuration(eventTimeoutOf(step.definition)),
    begins: true,
    event,
    data: dataOf(event),
  });
  return held === undefined ? null : toWaiting(event, held);
}

function dataOf({ name, key }: ProjectEvent): JsonObject {
  return { name, ...(key === '' ? {} : { key }) };
}

function toWaiting({ name }: ProjectEvent, { wait_until }: Pick<StoredStep, 'wait_until'>): WaitingStep {
  return { kind: 'waiting', awaiting: 'event', until: wait_until, ref: { event: name } };
}

interface BegunWait extends Pick<NewEventWait, 'event'> {
  readonly stored: StoredStep;
}

/** The database's clock decides whether the time is over; an event that came before it has ended the step. */
async function followWait(db: Db, { step, key }: StepUnit, { event, stored }: BegunWait): Promise<Execution> {
  if ((stored.wait_left_ms ?? 0) > 0) return toWaiting(event, stored);
  const end = endWithoutEvent(step.definition, event);
  if (end.state === 'failed') return failStep(db, key, end.error);
  await answerStep(db, key, { ...end, data: { ...dataOf(event), reason: 'timeout' } });
  return readEnd(db, key);
}
