/** A number that no double keeps, on its way through a run. */

import { CancelSource } from '@capstan/core/cancellation';
import { Registration } from '@capstan/core/contracts/capability';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import { noTelemetry } from '@capstan/core/telemetry/telemetry';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ConfigSchema } from '../../../src/config.ts';
import type { WorkerCtx } from '../../../src/context.ts';
import { connectDatabase, type Db } from '../../../src/db/connect.ts';
import { createInFlightSteps } from '../../../src/parts/calls/in-flight-steps.ts';
import { createRunContexts } from '../../../src/parts/definitions/run-context.ts';
import { createStepResults } from '../../../src/parts/definitions/step-results.ts';
import { closeRun } from '../../../src/use-cases/runs/closing.ts';
import { executeStep } from '../../../src/use-cases/steps/execution.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { aProject, aRun } from '../../support/factories.ts';
import { answerText, type Instance, startInstance } from '../../support/fleet.ts';
import { createRouterRuntime } from '../../support/router-runtime.ts';
import { waitFor } from '../../support/wait.ts';

let database: TestDatabase;
let db: Db;
let router: Awaited<ReturnType<typeof createRouterRuntime>>;
let instance: Instance;
beforeAll(async () => {
  database = await createTestDatabase();
  db = connectDatabase(database.url, 4);
  const config = ConfigSchema.parse({ DATABASE_URL: database.url, LOG_LEVEL: 'silent' });
  router = await createRouterRuntime(config, pino({ level: 'silent' }));
  const { project_id } = await aProject(db);
  const request = async <Body>(_method: string, _path: string, body: unknown) => {
    const answered = await router.registry.register(
      project_id,
      Registration.parse({ ...Object(body), shared_with: 'all' }),
    );
    return { status: 201, headers: new Headers(), body: answered as unknown as Body };
  };
  const input = { type: 'object', properties: { id: { type: 'integer' } } };
  instance = await startInstance({ request }, { name: 'ids', input });
  await waitFor('the router to know it', () => router.fleet.all('ids').length > 0);
});
afterAll(async () => {
  await instance?.stop();
  await router?.close();
  await db?.destroy();
  await database?.drop();
});

/** What a process needs; each has its own memory of results. */
function aProcess(): WorkerCtx {
  return {
    ...router.ctx,
    db,
    contexts: createRunContexts(db),
    results: createStepResults(db),
    inFlightSteps: createInFlightSteps(),
    telemetry: noTelemetry,
  } as unknown as WorkerCtx;
}

async function execute(ctx: WorkerCtx, run_id: string, step_id: string, item = 0) {
  const control = { round: 1, remainingMs: 20_000, signal: new CancelSource() };
  return executeStep(ctx, { run_id, step_id, item, revision: 0 }, control);
}

const id = '7615917337495251231';
const steps = [
  { id: 'a', capability: 'ids', input: {} },
  { id: 'kept', set: { pair: ['{{ steps.a.output.id }}', '{{ steps.a.output.at }}'] } },
  {
    id: 'b',
    capability: 'ids',
    input: { id: '{{ steps.kept.output.pair[0] }}', text: 'seed {{ steps.a.output.id }}' },
  },
  {
    id: 'each',
    capability: 'ids',
    for_each: { items: '{{ steps.a.output.all }}' },
    input: { id: '{{ item }}' },
  },
  { id: 'sum', set: { n: '{{ steps.a.output.id + 1 }}' } },
] as const satisfies PipelineDefinition['steps'];

test.each([
  ['in one process', false],
  ['by another process for each step', true],
])(
  'a large number is passed on exactly %s: to inputs, items and the output of the run',
  async (_, isElsewhere) => {
    const output = { whole: '{{ steps.a.output }}', pair: '{{ steps.kept.output.pair }}' };
    const { run_id } = await aRun(db, { definition: { steps: [...steps], output } });
    const answer = `{"id":${id},"at":1700000000.123456789,"all":[${id},-${id}]}`;
    instance.handle = (_exec, response) => answerText(response, answer);
    const before = instance.execs.length;
    let ctx = aProcess();
    for (const [step, item] of [
      ['a', 0],
      ['kept', 0],
      ['b', 0],
      ['each', 2],
    ] as const) {
      if (isElsewhere) ctx = aProcess();
      expect(await execute(ctx, run_id, step, item)).toMatchObject({ kind: 'succeeded' });
    }
    const sent = instance.execs.slice(before).map(({ text }) => text);
    expect(sent).toEqual(['{}', `{"id":${id},"text":"seed ${id}"}`, `{"id":-${id}}`]);
    expect(await closeRun(ctx, { run_id, outcome: 'succeeded', error: null })).toMatchObject({
      outcome: 'succeeded',
    });
    const { rows } = await db.raw('select output::text from run where run_id = ?', [run_id]);
    expect(rows[0].output).toBe(`{"whole":${answer},"pair":[${id},1700000000.123456789]}`);
  },
);

test('a step that calculates with a large number reports that', async () => {
  const { run_id } = await aRun(db, { definition: { steps: [...steps] } });
  instance.handle = (_exec, response) => answerText(response, `{"id":${id}}`);
  const ctx = aProcess();
  await execute(ctx, run_id, 'a');
  expect(await execute(ctx, run_id, 'sum')).toMatchObject({
    kind: 'failed',
    error: { code: 'expression_unresolved', message: expect.stringContaining('a number of 19 digits') },
  });
});
