/** What becomes of a step outside of its attempts: it waits for a correction or a person, or a person ends it. */
import type { EventType } from '../contracts/event.ts';
import type { Failure, Json, JsonObject } from '../contracts/primitives.ts';
import type { StepKey } from './attempt.ts';
import type { Db } from './connect.ts';
import { toJsonb } from './jsonb.ts';

type HeldStep = Omit<StepKey, 'revision'>;

const open = `('ready', 'running', 'retrying', 'in_review')`;

/** Keeps a step open, also one without a row. A step that ended stays. @returns whether it is held, also since before */
export const holdStep = async (
  db: Db,
  step: HeldStep,
  state: 'retrying' | 'in_review',
  { error, data }: { readonly error: Failure | null; readonly data: JsonObject },
): Promise<boolean> => {
  const { rows } = await db.raw<{ rows: { held: boolean }[] }>(
    `with held as (
       insert into step (run_id, step_id, item, state, error, started_at)
       values (:run_id, :step_id, :item, :state, :error, clock_timestamp())
       on conflict (run_id, step_id, item) do update set state = excluded.state,
         error = coalesce(excluded.error, step.error)
         where step.state in ${open} and step.state <> excluded.state
       returning run_id, step_id
     ), logged as (
       insert into event (run_id, type, step_id, data)
       select run_id, 'step.' || :state, step_id, cast(:data as jsonb) from held
     )
     select exists (select 1 from held) or exists (select 1 from step
       where run_id = :run_id and step_id = :step_id and item = :item and state = :state) as held`,
    { ...pick(step), state, error: error === null ? null : toJsonb(error), data: toJsonb(data) },
  );
  return rows[0]?.held === true;
};

/** A person's answer for a step that is open: its output, or that it is skipped. @returns false when it had ended */
export const answerStep = async (
  db: Db,
  step: HeldStep,
  answer:
    | { readonly state: 'succeeded'; readonly output: Json; readonly data: JsonObject }
    | { readonly state: 'skipped'; readonly data: JsonObject },
): Promise<boolean> => {
  const output = answer.state === 'succeeded' ? JSON.stringify(answer.output) : null;
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `with answered as (
       update step set state = :state, output = :output, error = null, finished_at = clock_timestamp()
       where run_id = :run_id and step_id = :step_id and item = :item and state in ${open}
       returning run_id, step_id
     ), logged as (
       insert into event (run_id, type, step_id, data)
       select run_id, 'step.' || :state, step_id, cast(:data as jsonb) from answered
     )
     select 1 from answered`,
    { ...pick(step), state: answer.state, output, data: toJsonb(answer.data) },
  );
  return rows.length === 1;
};

/** A line in the run's log about a step. */
export const logStep = async (
  db: Db,
  { run_id, step_id }: Pick<HeldStep, 'run_id' | 'step_id'>,
  type: Extract<EventType, `step.${string}`>,
  data: JsonObject,
): Promise<void> => {
  await db('event').insert({ run_id, step_id, type, data: toJsonb(data) });
};

const pick = ({ run_id, step_id, item }: HeldStep): HeldStep => ({ run_id, step_id, item });
