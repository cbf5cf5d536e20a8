/** Finds rows that are open or not yet delivered, and the ends of a task queue's workflows. */
import { Client, Connection } from '@temporalio/client';
import { inject } from 'vitest';
import type { Db } from '../../src/db/connect.ts';

const leftovers = `
  select 'run ' || run_id || ' is ' || state as what from run where finished_at is null
  union all select 'start of ' || run_id from run
    -- A run may end before its start is marked; then it is not marked any more, unless Temporal still has it to end.
    where start_delivered_at is null
      and (finished_at is null or cancel_mode = 'terminate' and cancel_delivered_at is null)
  union all select 'cancel of ' || run_id from run
    where cancel_requested_at is not null and cancel_delivered_at is null
  union all select 'parent of ' || run_id from run where parent_workflow_id is not null and parent_told_at is null
  union all select format('step %s/%s/%s is %s', run_id, step_id, item, state) from step where finished_at is null
  union all select format('wake of %s/%s/%s', run_id, step_id, item) from step where wake_requested_at is not null
  union all select format('review %s is %s', review_id, state) from review where state in ('open', 'claimed')
  union all select 'end of review ' || review_id from review
    where state in ('resolved', 'expired') and delivered_at is null
  union all select format('attempt %s of %s is %s', attempt_id, key, state) from attempt
    where state in ('reserved', 'dispatched')
  union all select format('%s reserved in %s', reserved_nano, scope) from budget where reserved_nano <> 0`;

/** One line for each; none when all runs have ended and all deliveries are done. */
export async function findLeftovers(db: Db): Promise<readonly string[]> {
  const { rows } = await db.raw<{ rows: { what: string }[] }>(`${leftovers} limit 20`);
  return rows.map(({ what }) => what);
}

/** Executions by status; a continued one counts once for each of its histories. */
export async function countExecutions(taskQueue: string): Promise<Readonly<Record<string, number>>> {
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  const counts: Record<string, number> = {};
  try {
    const { workflow } = new Client({ connection });
    for await (const { status } of workflow.list({ query: `TaskQueue = "${taskQueue}"` })) {
      counts[status.name] = (counts[status.name] ?? 0) + 1;
    }
    return counts;
  } finally {
    await connection.close();
  }
}
