import { beforeEach, expect, test } from 'vitest';
import type { RunWorkflows } from '../../../src/clients/temporal/run-workflows.ts';
import { insertKey } from '../../../src/db/access/api-key.ts';
import { insertLoginCode, insertSession } from '../../../src/db/access/session.ts';
import { generateKey } from '../../../src/use-cases/access/key-text.ts';
import { readKeyActs } from '../../../src/use-cases/recovery/lost-acts.ts';
import { type RecoverCtx, type RecoveryFindings, recover } from '../../../src/use-cases/recovery/recover.ts';
import { useDatabase } from '../../support/database.ts';
import { aDeliveryCtx, someDelivered } from '../../support/delivery.ts';
import { aClaim, anInstance, aProject, aRun, claimAttempt } from '../../support/factories.ts';

const { db } = useDatabase();
beforeEach(() => db.raw('truncate run, escalation, schedule cascade'));

async function aStartedRun() {
  const run = await aRun(db);
  await db('run').where({ run_id: run.run_id }).update({ start_delivered_at: db.fn.now() });
  return run;
}

/** A call whose time is over. */
async function anExpiredCall() {
  const run = await aStartedRun();
  await claimAttempt(db, aClaim(run, await anInstance(db)));
  await db('attempt').update({ lease_until: db.raw(`clock_timestamp() - interval '1 minute'`) });
  return run;
}

/** A recovery, the runs that it started, and what it reported before. */
function aRecovery(temporal: Partial<RunWorkflows> = {}, ports: Partial<RecoverCtx> = {}) {
  const started: string[] = [];
  const found: RecoveryFindings[] = [];
  const workflows: Partial<RunWorkflows> = {
    isForgotten: async () => false,
    start: async ({ run_id }) => void started.push(run_id),
    ...temporal,
  };
  const ctx: RecoverCtx = {
    ...aDeliveryCtx(db, { schedules: { standing: async () => null }, workflows }),
    registerSearchAttributes: async () => ['RunPhase'],
    pause: async () => undefined,
    ...ports,
  };
  const run = (restartsAll: boolean) =>
    recover(ctx, { restartsAll, onFound: (findings) => void found.push(findings) });
  return { ctx, run, started, found };
}

test('sessions and links of the backup end; keys that an audit log names as revoked since are revoked again', async () => {
  const { project_id } = await aProject(db);
  const key = async (name: string, created_by: string | null = null): Promise<string> => {
    const { key: _, ...parts } = generateKey('test');
    const expires_at = null;
    await insertKey(db, {
      ...parts,
      name,
      scopes: ['admin'],
      projects: [project_id],
      created_by,
      expires_at,
    });
    return parts.key_id;
  };
  const [kept, revoked, rotated, turned] = [await key('a'), await key('b'), await key('c'), await key('d')];
  const below = await key('e', revoked);
  const id = { session_id: 'ses_1', secret_sha256: Buffer.alloc(32, 1), keyId: kept, hours: 1 };
  await insertSession(db, id);
  await insertLoginCode(db, { code_sha256: Buffer.alloc(32, 2), keyId: kept, minutes: 5 });
  const known = { project_id, actor: kept, action: 'key.rotated', subject: turned, data: {} };
  const [{ entry }] = await db('audit').insert(known).returning('entry');
  const entries = [
    { entry_id: entry, action: 'key.rotated', subject: turned },
    { entry_id: '900', action: 'key.revoked', subject: revoked },
    { entry_id: '901', action: 'key.rotated', subject: rotated },
    { entry_id: '902', action: 'key.created', subject: 'key_new' },
    { entry_id: '903', action: 'key.created', subject: 'key_short' },
    { entry_id: '904', action: 'key.revoked', subject: 'key_short' },
    { entry_id: '905', action: 'skill.retired', subject: 'skill_1' },
  ];
  const lines = entries.map((one, n) =>
    n % 2 === 0 ? JSON.stringify(one) : JSON.stringify({ level: 30, audit: one, msg: 'audit' }),
  );
  const keyActs = await readKeyActs(['no JSON', ...lines, '{"msg":"listening"}']);
  const { ctx } = aRecovery();
  const found: RecoveryFindings[] = [];
  const report = await recover(ctx, {
    restartsAll: false,
    keyActs,
    onFound: (findings) => void found.push(findings),
  });
  const lost_acts = { made: ['key_new'], revoked: [revoked], rotated: [rotated] };
  expect(found).toMatchObject([{ lost_acts }]);
  expect(report).toMatchObject({ lost_acts, ended_sessions: 1, ended_login_links: 1 });
  expect(new Set(report.revoked_keys)).toEqual(new Set([revoked, below]));
  expect([await db('session'), await db('login_code')]).toEqual([[], []]);
  const working = await db('api_key').whereNull('revoked_at').orderBy('name').pluck('key_id');
  expect(working).toEqual([kept, rotated, turned]);
  expect(await db('audit').where({ actor: 'recover' }).orderBy('subject').pluck('subject')).toEqual(
    [revoked, below].sort(),
  );
  await expect(readKeyActs(['{"msg":"listening"}'])).rejects.toMatchObject({ code: 'request_invalid' });
});

test('runs that have ended in Temporal alone are named and left; with restart-all they start again', async () => {
  const [forgotten, running, ended] = [await aStartedRun(), await aStartedRun(), await aStartedRun()];
  await claimAttempt(db, aClaim(running, await anInstance(db)));
  await someDelivered(db, { runs: 0, ladders: 2, schedules: 1 });
  const erased: string[] = [];
  let looks = 0;
  const { run, started, found } = aRecovery({
    listRunning: async function* () {
      yield running.run_id;
    },
    isForgotten: async (work) => !('run_id' in work) || work.run_id === forgotten.run_id,
    erase: async ({ run_id }) => {
      erased.push(run_id);
      return ++looks % 2 === 0; // it takes a moment
    },
  });
  const report = await run(false);
  expect(report).toMatchObject({
    open_runs: 3,
    open_calls: 1,
    restarted_runs: 1,
    running_runs: 1,
    ended_in_temporal: [ended.run_id],
    restarted_ladders: 2,
    restored_schedules: 1,
    search_attributes: ['RunPhase'],
    interrupted_calls: [{ run_id: running.run_id, step_id: 'a', capability: 'concat' }],
  });
  expect(report).toMatchObject(found[0] ?? {});
  expect(started).toEqual([forgotten.run_id]);
  expect(erased).toEqual([]);
  const again = await run(true);
  expect(again).toMatchObject({ restarted_runs: 3, ended_in_temporal: [], undelivered_starts: 0 });
  expect(new Set(erased)).toEqual(new Set([forgotten.run_id, running.run_id, ended.run_id]));
});

test('only starts that Temporal has taken are counted; others are named with the reason', async () => {
  const [taken, refused, broken] = [await aStartedRun(), await aStartedRun(), await aStartedRun()];
  await someDelivered(db, { runs: 0, ladders: 1, schedules: 1 });
  const faults = new Map([
    [refused.run_id, 'Temporal refuses it'],
    [broken.run_id, 'no answer'],
  ]);
  const start: RunWorkflows['start'] = async ({ run_id }) => {
    const fault = faults.get(run_id);
    if (fault !== undefined) throw new Error(fault);
  };
  for (const restartsAll of [false, true]) {
    await db('run').update({ start_delivered_at: db.fn.now() });
    const startEscalation = () => Promise.reject(new Error('Temporal is away'));
    const { run } = aRecovery({ start, startEscalation, isForgotten: async () => true });
    const report = await run(restartsAll);
    expect(report).toMatchObject({ restarted_runs: 1, restarted_ladders: 0, restored_schedules: 1 });
    const named = report.failed_starts.map(({ id, reason }) => `${id.slice(0, 3)} ${reason}`).sort();
    const ladders = restartsAll ? [] : ['esc Temporal is away'];
    expect(named).toEqual([...ladders, 'run Temporal refuses it', 'run no answer']);
    const open = await db('run').whereNull('start_delivered_at').orderBy('run_id').pluck('run_id');
    expect(open).toEqual([refused.run_id, broken.run_id].sort());
    expect(open).not.toContain(taken.run_id);
  }
});

test('a run that had not been started here and has ended in Temporal is named; restart-all deletes it there', async () => {
  const [ended, unknown, open] = [await aRun(db), await aRun(db), await aRun(db)];
  const erased: string[] = [];
  const { run } = aRecovery({
    isForgotten: async (work) => 'run_id' in work && work.run_id === unknown.run_id,
    isOpen: async ({ run_id }) => run_id === open.run_id,
    erase: async ({ run_id }) => {
      erased.push(run_id);
      return true;
    },
  });
  expect(await run(false)).toMatchObject({ undelivered_starts: 3, ended_in_temporal: [ended.run_id] });
  expect(erased).toEqual([]);
  expect(await run(true)).toMatchObject({ ended_in_temporal: [], undeleted_runs: [] });
  expect(erased.sort()).toEqual([ended, unknown, open].map(({ run_id }) => run_id).sort());
});

test('interrupted calls are reported before anything is changed, whatever happens then', async () => {
  const { run_id } = await anExpiredCall();
  const away = aRecovery({ isForgotten: () => Promise.reject(new Error('Temporal is away')) });
  const untold = recover(away.ctx, {
    restartsAll: false,
    onFound: () => {
      throw new Error('nobody listens');
    },
  });
  await expect(untold).rejects.toThrow('nobody listens');
  expect(await db('attempt').pluck('state')).not.toContain('lost');
  await expect(away.run(false)).rejects.toThrow('Temporal is away');
  expect(await db('attempt').pluck('state')).toEqual(['lost']);
  expect(away.found).toMatchObject([{ open_calls: 1, interrupted_calls: [{ run_id, step_id: 'a' }] }]);
});

test('a report with more calls than it names counts all of them', async () => {
  await anExpiredCall();
  await db.raw(
    `insert into attempt select (jsonb_populate_record(a, jsonb_build_object('attempt_id', a.attempt_id || n, 'key', a.key || n))).*
     from attempt a, generate_series(1, 1200) n`,
  );
  const { run, found } = aRecovery();
  await run(false);
  expect(found[0]?.open_calls).toBe(1_201);
  expect(found[0]?.interrupted_calls).toHaveLength(1_000);
});

test('deletions that take minutes are waited for together, and one that does not end holds up no other', async () => {
  const runs = [];
  for (let n = 0; n < 40; n++) runs.push(await aStartedRun());
  const stuck = runs[3]?.run_id ?? '';
  let waitedMs = 0;
  const { run, started } = aRecovery(
    { erase: async ({ run_id }) => run_id !== stuck && waitedMs >= 150_000 },
    {
      pause: async (ms) => {
        waitedMs += ms;
      },
    },
  );
  expect(await run(true)).toMatchObject({ restarted_runs: 39, undeleted_runs: [stuck] });
  expect(started).toHaveLength(39);
  expect(started).not.toContain(stuck);
  expect(waitedMs).toBeLessThanOrEqual(600_000);
  const [row] = await db('run').where({ run_id: stuck });
  expect(row.start_delivered_at).not.toBeNull();
});

test('search attributes that may not be registered prevent no run from continuing', async () => {
  const forgotten = await aStartedRun();
  const registerSearchAttributes = () => Promise.reject(new Error('not with this key'));
  const { run, started } = aRecovery({ isForgotten: async () => true }, { registerSearchAttributes });
  expect(await run(false)).toMatchObject({
    search_attributes: [],
    search_attributes_fault: 'not with this key',
    restarted_runs: 1,
  });
  expect(started).toEqual([forgotten.run_id]);
});
