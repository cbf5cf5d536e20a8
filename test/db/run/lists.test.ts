import pg from 'pg';
import { beforeAll, describe, expect, it } from 'vitest';
import { type CallFilter, listCalls } from '../../../src/db/attempt/call.ts';
import { listDecisions } from '../../../src/db/attempt/decision.ts';
import { listRuns, mostSearched } from '../../../src/db/run/run-list.ts';
import { boundsOfIds } from '../../../src/parts/ids.ts';
import { useDatabase } from '../../support/database.ts';
import { aRun, type StoredRun } from '../../support/factories.ts';
import { isLong } from '../../support/long.ts';

const { db, url } = useDatabase(3);

/** Rows of a project: ids as Capstan makes them, a second apart, back from now. */
async function fill({ project_id, job_id, digest }: StoredRun, runs: number): Promise<void> {
  const idOf = (kind: string): string =>
    `'${kind}_' || regexp_replace(lpad(to_hex((extract(epoch from now()) * 1000)::bigint - n * 1000), 12, '0'), '(.{8})(.{4})', '\\1-\\2-7') || substr(md5(random()::text), 1, 3) || '-8' || substr(md5(random()::text), 1, 3) || '-' || substr(md5(random()::text), 1, 12)`;
  await db.raw(
    `insert into run (run_id, project_id, job_id, pipeline, version, digest, priority, state, error, created_at, finished_at, start_delivered_at)
     select ${idOf('run')}, :project_id, :job_id, 'trailer', '1', :digest, 'standard', 'failed',
       jsonb_build_object('code', 'input_rejected', 'message', 'no such file ' || n), now(), now(), now()
     from generate_series(1, :runs::int) n`,
    { project_id, job_id, digest, runs },
  );
  await db.raw(
    `insert into attempt (attempt_id, project_id, key, number, capability, instance_id, endpoint, state, token, lease_until,
       cost_type, rate_usd, reserved_nano, settled_nano, finished_at)
     select ${idOf('attempt')}, :project_id, 'k' || n || :project_id, 1, 'concat', 'i', 'http://i.test', 'settled',
       gen_random_uuid(), now(), 'free', 0, 0, 0, now()
     from generate_series(1, :runs::int) n`,
    { project_id, runs },
  );
}

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

function nodesOf(node: PlanNode): readonly PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}

/** How the database reads a table for what `work` asks of it: by which means, and how many rows in all. */
async function readingOf(table: string, work: () => Promise<unknown>) {
  const asked: { sql: string; bindings: unknown[] }[] = [];
  const note = (query: { sql: string; bindings: unknown[] }) => void asked.push(query);
  db.on('query', note);
  await work();
  db.off('query', note);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const means = new Set<string>();
  let rows = 0;
  for (const { sql, bindings } of asked) {
    const answer = await client.query(`explain (analyze, format json) ${sql}`, bindings);
    const [{ Plan }] = answer.rows[0]['QUERY PLAN'] as [{ Plan: PlanNode }];
    for (const node of nodesOf(Plan).filter((one) => one['Relation Name'] === table)) {
      means.add(node['Index Name'] ?? node['Node Type']);
      rows += (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'];
    }
  }
  await client.end();
  return { means, rows };
}

const many = isLong ? 3 * mostSearched : mostSearched + 2_000;
const limit = 21;

describe('lists of a project beside another one with many rows', () => {
  let small: StoredRun;
  let large: StoredRun;
  beforeAll(async () => {
    [small, large] = [await aRun(db), await aRun(db)];
    await fill(large, many);
    await fill(small, 100);
    await db.raw('vacuum analyze run, attempt');
  });

  it.each([
    ['all', {}],
    ['in a state that none is in', { state: 'paused' as const }],
    ['with a text that none has', { q: 'zzz' }],
    ['since long ago', { since: '1970-01-01T00:00:00Z', label: ['a', 'b'] as const }],
  ])('reads runs by the index of the project alone: %s', async (_, filter) => {
    const { means, rows } = await readingOf('run', () =>
      listRuns(db, small.project_id, { ...filter, limit }),
    );
    expect(means).not.toContain('Seq Scan');
    // Both begin with the project; the latter has the runs that have not ended.
    expect(means).toContain('state' in filter ? 'run_open' : 'run_listed');
    expect(rows).toBeLessThan(500);
  });

  it.each([
    ['of any time', {}],
    [
      'since long ago, of a capability that none has',
      { since: new Date(0), until: new Date(), capability: 'none' },
    ],
  ])('reads decisions by the index of the project alone: %s', async (_, filter) => {
    const ids = 'since' in filter ? { ids: boundsOfIds('attempt', filter.since as Date, new Date()) } : {};
    const { means, rows } = await readingOf('attempt', () =>
      listDecisions(db, small.project_id, { ...filter, ...ids, limit }),
    );
    expect(means).not.toContain('Seq Scan');
    expect(means).toContain('since' in filter ? 'attempt_by_capability' : 'attempt_by_project');
    expect(rows).toBeLessThan(500);
  });

  const rare = { capability: 'rare', endpoint: 'http://rare.test', model: 'rare-1' };
  const scopes = ['key:rare', 'pipeline:rare', 'user:rare', 'label:team=rare'];
  const filters: readonly (readonly [string, Partial<CallFilter>, number])[] = [
    ['all', {}, limit],
    ['of a capability', { capability: rare.capability }, 1],
    ['of an instance', { endpoint: rare.endpoint }, 1],
    ['of a model', { model: rare.model }, 1],
    ['that have failed', { outcome: 'failed' }, 1],
    ['that are running', { outcome: 'running' }, 1],
    ...scopes.map((scope) => [`of ${scope}`, { scopes: [scope] }, 1] as const),
    ['of two scopes', { scopes: scopes.slice(2) }, 1],
    ['of a user that none has', { scopes: ['user:none'] }, 0],
    [
      'since long ago, of a user',
      { scopes: ['user:rare'], since: new Date(0), until: new Date('2999-01-01') },
      1,
    ],
  ];
  it.each(filters)('reads few rows of a large project for its calls: %s', async (_, filter, found) => {
    const attempt = db('attempt').where({ project_id: large.project_id });
    const [oldest] = await attempt.clone().orderByRaw('attempt_id collate "C"').limit(1).pluck('attempt_id');
    const isOpen = filter.outcome === 'running';
    await db('attempt')
      .where({ attempt_id: oldest })
      .update({
        ...rare,
        scopes,
        error: isOpen ? null : { code: 'no' },
        state: isOpen ? 'dispatched' : 'settled',
        finished_at: isOpen ? null : db.fn.now(),
      });
    let calls = 0;
    const { means, rows } = await readingOf('attempt', async () => {
      calls = (await listCalls(db, large.project_id, { scopes: [], ...filter, limit })).length;
    });
    expect([calls, [...means]]).toEqual([found, expect.not.arrayContaining(['Seq Scan'])]);
    expect(rows).toBeLessThan(500);
  });

  it.each([
    ['runs', 'run', (limit: number) => listRuns(db, large.project_id, { limit })],
    ['decisions', 'attempt', (limit: number) => listDecisions(db, large.project_id, { limit })],
  ] as const)('reads of the large project no more than a page of %s', async (_, table, list) => {
    const { means, rows } = await readingOf(table, () => list(limit));
    expect(means).not.toContain('Seq Scan');
    expect(rows).toBeLessThan(500);
  });

  it('looks at a bounded number of runs for a text, found or not', async () => {
    const { means, rows } = await readingOf('run', () => listRuns(db, large.project_id, { q: 'zzz', limit }));
    expect(means).not.toContain('Seq Scan');
    expect(rows).toBeGreaterThanOrEqual(mostSearched);
    expect(rows).toBeLessThan(mostSearched + 500);
  });
});
