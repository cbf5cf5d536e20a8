import type { Db } from '../../src/db/connect.ts';
import { waitFor } from '../support/wait.ts';

/** Waits until every instance has answered a call that began after now. */
export async function waitForAnswers(
  db: Db,
  instances: readonly { readonly endpoint: string }[],
): Promise<void> {
  const { rows } = await db.raw<{ rows: [{ now: Date }] }>('select clock_timestamp() as now');
  const endpoints = new Set(instances.map(({ endpoint }) => endpoint));
  const used = () =>
    db('attempt')
      .whereIn('endpoint', [...endpoints])
      .where({ ambiguity: 'answered', state: 'settled' })
      .whereNull('error')
      .where('started_at', '>', rows[0].now)
      .distinct('endpoint');
  await waitFor('all instances to be used', async () => (await used()).length === endpoints.size, 60_000);
}
