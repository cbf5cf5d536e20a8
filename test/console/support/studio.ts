/** A project with something to look at: a pipeline, its runs in several states, a review, a skill, costs, a schedule. */
import { inject } from 'vitest';
import type { PipelineSubmitted } from '../../../src/contracts/pipeline.ts';
import type { Run } from '../../../src/contracts/run.ts';
import { type Capstan, startCapstan } from '../../support/capstan.ts';
import { answer, echo, type Handler, type Instance, startInstance } from '../../support/fleet.ts';
import { reviewOf } from '../../support/reviews.ts';
import { waitFor } from '../../support/wait.ts';
import { provideConsole } from './built-console.ts';

export interface Studio {
  readonly capstan: Capstan;
  readonly done: string;
  readonly failed: string;
  /** Waits for a person at `sound`. */
  readonly waiting: string;
  readonly review: string;
  /** Asked by a step; nobody answers it. */
  readonly question: string;
  readonly close: () => Promise<void>;
}

export const reel = `# Cuts, joins and shows
pipeline: reel
version: "1.0"
description: Cuts each clip, joins them and makes a cover
job_schema:
  type: object
  required: [clips]
  properties:
    clips: { type: array, items: { type: string } }
    title: { type: string, default: My reel }
    rate: { type: [integer, string], default: 44100 }
steps:
  - id: trim
    capability: trim
    for_each: { items: "{{ job.clips }}" }
    input: { clip: "{{ item }}" }
  - id: sound
    capability: resample
    input: { rate: "{{ job.rate }}" }
  - id: join
    capability: join
    input: { parts: "{{ steps.trim.output }}", title: "{{ job.title }}" }
    depends_on: [sound]
output: { title: "{{ steps.join.output.title }}" }
`;

const picky: Handler = (exec, response) =>
  Number.isInteger(exec.input.rate)
    ? echo(exec, response)
    : answer(response, 422, {
        ok: false,
        error: `rate must be a whole number of Hz, not ${exec.input.rate}`,
      });

const heartbeatMs = 20_000;

/** As instances do that live longer than a test. */
function keepAlive({ request }: Capstan, instances: readonly Instance[]): NodeJS.Timeout {
  const names = ['trim', 'trim', 'join', 'concat', 'thumbnail', 'resample'];
  return setInterval(() => {
    for (const [index, { endpoint }] of instances.entries()) {
      void request('POST', `/v1/capabilities/${names[index]}/heartbeat`, { endpoint }).catch(() => undefined);
    }
  }, heartbeatMs);
}

async function startFleet(capstan: Capstan): Promise<Instance[]> {
  const rate = { type: 'object', properties: { rate: {} }, required: ['rate'] };
  const instances = await Promise.all([
    startInstance(capstan, { name: 'trim' }),
    startInstance(capstan, {
      name: 'trim',
      tags: ['cloud'],
      cost_model: { type: 'per_call', rate_usd: 0.002 },
    }),
    startInstance(capstan, { name: 'join', cost_model: { type: 'per_call', rate_usd: 0.01 } }),
    startInstance(capstan, { name: 'concat' }),
    startInstance(capstan, { name: 'thumbnail' }),
    startInstance(capstan, { name: 'resample', input: rate }),
  ]);
  for (const instance of instances) instance.handle = echo;
  const last = instances.at(-1);
  if (last !== undefined) last.handle = picky;
  return instances;
}

export async function startRunOf(capstan: Capstan, job: object): Promise<string> {
  const { status, body } = await capstan.request<Run>('POST', '/v1/runs', { pipeline: 'reel', job });
  if (status !== 202) throw new Error(`POST /v1/runs: ${status} ${JSON.stringify(body)}`);
  return body.run_id;
}

/** A run that asks a person and does nothing else. */
export async function askQuestion(
  capstan: Capstan,
): Promise<{ readonly run: string; readonly review: string }> {
  const { run_id } = await capstan.submit([{ id: 'publish', review: { title: 'May it be published?' } }]);
  const review = await waitFor(`the question of ${run_id}`, async () => {
    const { body } = await capstan.request<Run>('GET', `/v1/runs/${run_id}`);
    return body.steps[0]?.review_id;
  });
  return { run: run_id, review };
}

export async function openStudio(): Promise<Studio> {
  await provideConsole(inject('packageFolder'));
  const capstan = await startCapstan();
  const instances = await startFleet(capstan);
  const beats = keepAlive(capstan, instances);
  await capstan.request<PipelineSubmitted>('POST', '/v1/pipelines', reel, {
    'content-type': 'application/yaml',
  });
  const second = reel.replace('"1.0"', '"1.1"').replace('and makes a cover', 'in order');
  await capstan.request('POST', '/v1/pipelines', second, { 'content-type': 'application/yaml' });
  await capstan.request('PUT', '/v1/budgets', { scope: 'project', daily_limit_usd: 2 });
  const schedule = { name: 'morning', pipeline: 'reel', cron: '0 7 * * 1-5', timezone: 'Europe/Berlin' };
  await capstan.request('POST', '/v1/schedules', { ...schedule, job: { clips: ['a'] } });
  const done = await startRunOf(capstan, { clips: ['a', 'b', 'c'], title: 'One', rate: 44_100 });
  const waiting = await startRunOf(capstan, { clips: ['a', 'b'], title: 'Two', rate: '44.1k' });
  const broken = [{ id: 'one', capability: 'resample', input: { rate: 'x' }, escalate: { enabled: false } }];
  const failed = (await capstan.submit(broken)).run_id;
  await Promise.all([capstan.ended(done), capstan.ended(failed)]);
  const { review_id } = await reviewOf(capstan, waiting, 'sound');
  const question = await askQuestion(capstan);
  return {
    capstan,
    done,
    failed,
    waiting,
    review: review_id,
    question: question.review,
    close: async () => {
      clearInterval(beats);
      await Promise.all(instances.map((instance) => instance.stop()));
      await capstan.stop();
    },
  };
}
