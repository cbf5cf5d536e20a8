/** What instances log while steps call them: in the logs of the runs, bounded, fair, and nothing waits for it. */
import { beforeAll, expect, test } from 'vitest';
import { insertStepLog } from '../../../src/db/step/step-progress.ts';
import { createCallLogWriter } from '../../../src/parts/calls/call-log.ts';
import { aRun } from '../../support/factories.ts';
import { answer, type Handler, type Instance } from '../../support/fleet.ts';
import { useSteps } from '../../support/steps.ts';
import { waitFor } from '../../support/wait.ts';
import { silentLogger } from '../../use-cases/registry/registry-bench.ts';

const world = useSteps();
let instance: Instance;
beforeAll(async () => {
  instance = await world.register({ name: 'concat' });
});
const ndjson = { 'content-type': 'application/x-ndjson' };

function aLine(message: string, level = 'info'): string {
  return `${JSON.stringify({ log: { level, message } })}\n`;
}

function logOf(runId: string) {
  return world
    .db('event')
    .where({ type: 'step.log', run_id: runId })
    .orderBy(['xid', 'id'])
    .select('step_id', 'item', 'attempt', 'data');
}

async function written(runId: string, lines: number) {
  return waitFor(`${lines} lines`, async () => {
    const log = await logOf(runId);
    return log.length >= lines ? log : undefined;
  });
}

/** Nothing of an open call is known in advance, so lines that come apart from one another arrive while it is open. */
const logging: Handler = async (exec, response) => {
  response.writeHead(200, ndjson);
  response.write(aLine('two clips'));
  await waitFor(
    'the first to be written',
    async () => (await world.db('event').where({ type: 'step.log' })).length > 0,
  );
  response.write('{"log":{"level":"loud"}}\n');
  response.end(`${aLine('slow disk', 'warn')}${JSON.stringify({ ok: true, output: exec.input })}\n`);
};

test('lines of a call are in the log with step, attempt, instance and level, and the answer is as ever', async () => {
  instance.handle = logging;
  const run = await aRun(world.db, { project_id: world.projectId() });
  const end = await world.newWorker().execute(run, 'a');
  expect(end).toMatchObject({ kind: 'succeeded' });
  const { endpoint } = instance;
  const message = '1 line was dropped; 1 had no known level or no message';
  expect(await written(run.run_id, 3)).toEqual([
    { step_id: 'a', item: null, attempt: 1, data: { level: 'info', message: 'two clips', endpoint } },
    { step_id: 'a', item: null, attempt: 1, data: { level: 'warn', message: 'slow disk', endpoint } },
    { step_id: 'a', item: null, attempt: 1, data: { level: 'warn', message, endpoint } },
  ]);
});

test('lines of a call without a known outcome stay, and the next attempt has its own', async () => {
  let calls = 0;
  instance.handle = (exec, response) => {
    calls += 1;
    if (calls > 1) return answer(response, 200, { ok: true, output: exec.input });
    response.writeHead(200, ndjson);
    response.write(aLine('about to die', 'error'), () => response.destroy());
  };
  const run = await aRun(world.db, { project_id: world.projectId() });
  await world.newWorker().execute(run, 'a');
  expect(await written(run.run_id, 1)).toMatchObject([
    { attempt: 1, data: { level: 'error', message: 'about to die' } },
  ]);
});

const origin = { attempt: 1, endpoint: 'http://127.0.0.1:1' };
const keyOf = (run: { run_id: string }) => ({ run_id: run.run_id, step_id: 'a', item: 2, revision: 0 });

test('a talkative run waits in its own room, and takes turns with others', async () => {
  const [loud, quiet] = [await aRun(world.db), await aRun(world.db)];
  const writer = createCallLogWriter({ db: world.db, logger: silentLogger });
  const log = writer.open(keyOf(loud), origin);
  const kept = Array.from({ length: 2_000 }, (_, at) => log.note({ level: 'info', message: `line ${at}` }));
  expect(kept.filter(Boolean)).toHaveLength(1_024);
  const other = writer.open(keyOf(quiet), origin);
  expect(other.note({ level: 'error', message: 'mine' })).toBe(true);
  const statements: number[] = [];
  world.db.on('query', ({ sql, bindings }: { sql: string; bindings: unknown[] }) => {
    if (sql.includes("'step.log'")) statements.push(JSON.parse(String(bindings[0])).length);
  });
  await writer.close();
  world.db.removeAllListeners('query');
  expect(statements).toEqual([256, 256, 256, 256, 1]);
  const order = await world
    .db('event')
    .whereIn('run_id', [loud.run_id, quiet.run_id])
    .andWhere({ type: 'step.log' })
    .orderBy(['xid', 'id'])
    .select('run_id', 'item', 'data');
  expect(order.findIndex(({ run_id }) => run_id === quiet.run_id)).toBe(32);
  expect(order[32]).toMatchObject({ item: 2, data: { message: 'mine' } });
  const ofLoud = order.filter(({ run_id }) => run_id === loud.run_id);
  expect(ofLoud.map(({ data }) => data.message)).toEqual(ofLoud.map((_, at) => `line ${at}`));
});

test('lines of a run that is gone are left out, and take no others with them', async () => {
  const { run_id } = await aRun(world.db);
  const data = { level: 'info', message: 'x', endpoint: origin.endpoint } as const;
  const line = { step_id: 'a', item: 0, attempt: 1, age_ms: 60_000, data };
  await insertStepLog(world.db, [
    { ...line, run_id: 'run_gone' },
    { ...line, run_id },
  ]);
  expect(await logOf(run_id)).toHaveLength(1);
  const { rows } = await world.db.raw(
    `select extract(epoch from clock_timestamp() - at) >= 60 as is_old from event where type = 'step.log' and run_id = ?`,
    [run_id],
  );
  expect(rows).toEqual([{ is_old: true }]);
});

test('log lines that cannot be stored are retried, and given up when the process ends', async () => {
  const { run_id } = await aRun(world.db);
  let failures = 0;
  const warned: string[] = [];
  const db = {
    raw: async () => {
      failures += 1;
      throw new Error('the database is gone');
    },
  };
  const logger = { warn: (_: object, text: string) => void warned.push(text) };
  const writer = createCallLogWriter({ db, logger } as never);
  writer.open(keyOf({ run_id }), origin).note({ level: 'info', message: 'x' });
  await waitFor('the first try', () => failures > 0);
  await writer.close();
  expect(warned).toEqual([
    '1 lines of capabilities could not be stored; trying again',
    '1 lines of capabilities could not be stored; they are lost',
  ]);
});
