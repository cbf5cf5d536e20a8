/**
 * The list of calls in a project of a million: `npm run bench -- calls [--calls 1000000]`. Prints how long the page's
 * query takes with each filter, and the indexes that it reads. The calls of what is rare are the oldest. Bar: each
 * takes at most 200 ms, and none reads the whole table.
 */
import { parseArgs } from 'node:util';
import { type CallFilter, listCalls } from '../../src/db/attempt/call.ts';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { runBench, say } from '../shared/run-bench.ts';
import { startDatabase } from '../shared/start-database.ts';

const { values } = parseArgs({ options: { calls: { type: 'string', default: '1000000' } } });
const calls = Number(values.calls);
const mostMs = 200;
const rounds = 5;

/** Ids that sort by their time, over the last 30 days; ten of the oldest are rare in every way. */
async function fill(db: Db, projectId: string): Promise<void> {
  const atOnce = 200_000;
  for (let from = 0; from < calls; from += atOnce) {
    await db.raw(
      `insert into attempt (attempt_id, project_id, key, number, capability, instance_id, endpoint, state, token, lease_until,
         cost_type, rate_usd, reserved_nano, settled_nano, certainty, duration_ms, error, model, tokens, scopes,
         started_at, finished_at)
       select 'att_' || substr(hex, 1, 8) || '-' || substr(hex, 9) || substr(gen_random_uuid()::text, 14), :projectId,
         'call_' || n, 1, 'model.' || kind, 'ins_1', 'http://' || kind || '.test', 'settled', gen_random_uuid(), at,
         'per_call', 0.001, 0, 1000000, 'exact', 40, case when kind = 'rare' then '{"code": "no"}'::jsonb end,
         kind || '-1', '{"input": 30, "output": 12}',
         array['key:' || kind, 'user:' || case kind when 'rare' then kind else 'u' || n % 5000 end, 'label:team=' || kind],
         at, at
       from (select n, at, lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') as hex,
           case when n < 10 then 'rare' else 'k' || n % 7 end as kind from (
         select n, now() - interval '30 days' * (1 - n / :calls::float8) as at
         from generate_series(:from::bigint, :to::bigint - 1) n) n) n`,
      { projectId, calls, from, to: Math.min(from + atOnce, calls) },
    );
  }
  await db.raw('vacuum (analyze) attempt');
}

const filters: readonly (readonly [string, Partial<CallFilter>])[] = [
  ['none', {}],
  ['a usual capability', { capability: 'model.k3' }],
  ['a rare capability', { capability: 'model.rare' }],
  ['a rare instance', { endpoint: 'http://rare.test' }],
  ['a rare model', { model: 'rare-1' }],
  ['a usual key', { scopes: ['key:k3'] }],
  ['a rare key', { scopes: ['key:rare'] }],
  ['a user', { scopes: ['user:u77'] }],
  ['a rare label', { scopes: ['label:team=rare'] }],
  ['a key and a label', { scopes: ['key:k3', 'label:team=k3'] }],
  ['a pipeline that none has', { scopes: ['pipeline:none'] }],
  ['failed', { outcome: 'failed' }],
  ['running', { outcome: 'running' }],
  ['direct', { direct: true }],
];

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Index Name'?: string;
  readonly Plans?: readonly PlanNode[];
}

function meansOf(node: PlanNode): readonly string[] {
  const own = node['Index Name'] ?? (node['Node Type'] === 'Seq Scan' ? 'Seq Scan' : null);
  return [...(own === null ? [] : [own]), ...(node.Plans ?? []).flatMap(meansOf)];
}

/** The means by which the database answers what `work` asks. */
async function explain(db: Db, work: () => Promise<unknown>): Promise<readonly string[]> {
  const asked: { readonly sql: string; readonly bindings: readonly unknown[] }[] = [];
  const note = (query: { sql: string; bindings: unknown[] }) => void asked.push(query);
  db.on('query', note);
  await work();
  db.off('query', note);
  const means: string[] = [];
  for (const { sql, bindings } of asked) {
    const text = sql.replaceAll(/\$\d+/g, '?');
    const { rows } = await db.raw(`explain (format json) ${text}`, [...bindings] as never);
    means.push(...meansOf(rows[0]['QUERY PLAN'][0].Plan));
  }
  return means;
}

await runBench(async (place) => {
  const { databaseUrl, projectId } = await startDatabase(place);
  const db = connectDatabase(databaseUrl, 1, 0);
  say(`${calls} calls are written`);
  await fill(db, projectId);
  let isMet = true;
  for (const [name, filter] of filters) {
    const list = () => listCalls(db, projectId, { scopes: [], ...filter, limit: 51 });
    const took: number[] = [];
    let found = 0;
    for (let round = 0; round < rounds; round++) {
      const beganAt = performance.now();
      found = (await list()).length;
      took.push(performance.now() - beganAt);
    }
    const median = took.toSorted((a, b) => a - b)[Math.floor(rounds / 2)] ?? Number.NaN;
    const means = await explain(db, list);
    const isGood = median <= mostMs && !means.includes('Seq Scan');
    isMet &&= isGood;
    console.log(
      `${name.padEnd(26)} ${String(found).padStart(3)} rows ${median.toFixed(1).padStart(7)} ms  ${means.join(', ')} ${isGood ? '' : 'FAIL'}`,
    );
  }
  await db.destroy();
  return isMet;
});
