/**
 * Checks of the work in the database: runs whose workflow fails again and again, and data that is encrypted by keys
 * which the settings lack. The servers record why a run cannot make progress.
 */
import pg from 'pg';
import { readPayloadKeys } from '../../clients/temporal/payload-codec.ts';
import { type Check, type DoctorOptions, messageOf, missing, ok, warning } from './check.ts';

async function ask<Row extends pg.QueryResultRow>(client: pg.Client, text: string): Promise<Row[]> {
  return (await client.query<Row>(text)).rows;
}

const shownReasons = 3;

async function checkRuns(client: pg.Client): Promise<Check> {
  const stalled = await ask<{ reason: string; runs: number }>(
    client,
    `select split_part(stalled->>'message', e'\\n', 1) as reason, count(*)::int as runs from run
     where finished_at is null and stalled is not null group by 1 order by 2 desc, 1`,
  );
  if (stalled.length === 0) return ok('runs', 'each open run can make progress');
  const total = stalled.reduce((sum, { runs }) => sum + runs, 0);
  const reasons = stalled.slice(0, shownReasons).map(({ reason, runs }) => `${runs}: ${reason}`);
  const more = stalled.length > shownReasons ? [`${stalled.length - shownReasons} more reasons`] : [];
  return warning(
    'runs',
    `${total} open runs cannot make progress. ${[...reasons, ...more].join('; ')}`,
    'a key that is missing in PAYLOAD_KEYS: add it for every server and worker, and they go on by themselves. Other reasons: docs/operate/runs.md, "Queued and stalled runs"',
  );
}

async function checkKeys(client: pg.Client, { PAYLOAD_KEYS }: NodeJS.ProcessEnv): Promise<Check> {
  const known = PAYLOAD_KEYS ? readPayloadKeys(PAYLOAD_KEYS).map(({ id }) => id) : [];
  const have = known.length === 0 ? 'PAYLOAD_KEYS is not set here' : `PAYLOAD_KEYS has ${known.join(', ')}`;
  const sealed = await ask<{ key_id: string; secrets: number; answers: number }>(
    client,
    `select key_id, sum(secrets)::int as secrets, sum(answers)::int as answers from (
       select key_id, 1 as secrets, 0 as answers from secret
       union all select key_id, 0, 1 from callback_answer where body is not null and key_id is not null
     ) sealed group by key_id order by key_id`,
  );
  const lacking = sealed.filter(({ key_id }) => !known.includes(key_id));
  if (sealed.length === 0) return ok('payload keys', 'no secret is encrypted');
  if (lacking.length === 0) return ok('payload keys', `each secret can be read: ${have}`);
  const counts = lacking.map(
    ({ key_id, secrets, answers }) => `${secrets} secrets and ${answers} answers by ${key_id}`,
  );
  return missing(
    'payload keys',
    `encrypted by keys that are missing: ${counts.join(', ')}; ${have}. Steps that need them wait`,
    'set PAYLOAD_KEYS with these keys for every server and worker: docs/operate/encryption.md, "If a key is missing"',
  );
}

/** @param databaseUrl undefined: no database runs */
export async function checkWork(
  { environment }: Pick<DoctorOptions, 'environment'>,
  databaseUrl: string | undefined,
): Promise<readonly Check[]> {
  if (databaseUrl === undefined) return [];
  const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 5_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const [{ is_there: hasTables } = { is_there: false }] = await ask<{ is_there: boolean }>(
      client,
      `select to_regclass('callback_answer') is not null as is_there`,
    );
    if (!hasTables) return [];
    return [await checkRuns(client), await checkKeys(client, environment)];
  } catch (error) {
    return [warning('runs', messageOf(error), 'see whether the database answers')];
  } finally {
    await client.end().catch(() => undefined);
  }
}
