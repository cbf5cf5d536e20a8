/** A case on the real stack: instances, people and the run, and what a caller of the API sees of it in the end. */
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Validation } from '@capstan/core/contracts/pipeline-answers';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { Problem } from '@capstan/core/contracts/problem';
import type { Run } from '@capstan/core/contracts/run';
import type { RunStep, StepDetail } from '@capstan/core/contracts/run-step';
import type { LocalResult } from '@capstan/core/mock-run/run-locally';
import type { CapstanClient } from '../support/capstan.ts';
import { type ConformanceCase, completeDefinition, isRefusal, type Refusal } from './case.ts';
import { type CaseFleet, type CaseHost, startFleet } from './temporal-fleet.ts';
import { answerReviews, controlRun, sendEvents } from './temporal-people.ts';

type Step = LocalResult['steps'][number];

/** What `findDifferences` looks at. */
export type SeenRun = Pick<LocalResult, 'outcome' | 'error' | 'output' | 'steps' | 'calls'> &
  Pick<CaseFleet, 'arrivals'> & {
    /** Between the end of an attempt and the beginning of the next one, by the database's clock, ms. */
    readonly pauses: readonly number[];
    /** The same from the beginning of an attempt: a date that an answer names does not wait for its end. */
    readonly gaps: readonly number[];
  };

async function readPauses({ db }: CaseHost, runId: string): Promise<Pick<SeenRun, 'pauses' | 'gaps'>> {
  const attempts = await db('attempt')
    .where({ run_id: runId })
    .orderBy('number')
    .select('started_at', 'finished_at');
  const between = (column: 'started_at' | 'finished_at'): number[] =>
    attempts
      .slice(1)
      .map(({ started_at }, at) => started_at.getTime() - (attempts[at]?.[column]?.getTime() ?? 0));
  return { pauses: between('finished_at'), gaps: between('started_at') };
}

/** Cases run in parallel, so each has capabilities and events of its own. */
function renameCapabilities(
  definition: JsonObject | PipelineDefinition,
  nameOf: (capability: string) => string,
): JsonObject {
  const { steps } = definition as unknown as { readonly steps: readonly JsonObject[] };
  const renamed = steps.map((step) =>
    typeof step.capability === 'string'
      ? { ...step, capability: nameOf(step.capability) }
      : renameEvent(step, nameOf),
  );
  return { ...(definition as JsonObject), steps: renamed };
}

function renameEvent(step: JsonObject, nameOf: (name: string) => string): JsonObject {
  const { event } = step as { readonly event?: { readonly name: string } };
  return event === undefined ? step : { ...step, event: { ...event, name: nameOf(event.name) } };
}

async function post<Body>(
  { request }: CapstanClient,
  path: string,
  body: unknown,
  wanted: number,
): Promise<Body> {
  const answered = await request<Body>('POST', path, body);
  if (answered.status === wanted) return answered.body;
  throw new Error(`POST ${path}: ${answered.status} ${JSON.stringify(answered.body)}`);
}

function toStep(id: string, step: RunStep, output: StepDetail['output']): Step {
  return {
    id,
    item: step.item ?? 0,
    state: step.state,
    attempts: step.attempts,
    cost_usd: step.cost_usd,
    ...(output === undefined ? {} : { output }),
    ...(step.error === undefined ? {} : { error: step.error }),
    started_at_ms: null,
    finished_at_ms: null,
  };
}

async function readStep({ request }: CapstanClient, runId: string, step: RunStep): Promise<Step[]> {
  const path = `/v1/runs/${runId}/steps/${step.id}`;
  const { output } = (await request<StepDetail>('GET', path)).body;
  const whole = toStep(step.id, step, output);
  if (step.items === undefined) return [whole];
  const { items } = (await request<{ items: RunStep[] }>('GET', `${path}/items?limit=200`)).body;
  return [whole, ...items.map((item) => toStep(step.id, item, undefined))];
}

/** @param suffix of the names of its capabilities */
export async function playCase(host: CaseHost, one: ConformanceCase, suffix: string): Promise<SeenRun> {
  const { capstan } = host;
  const nameOf = (capability: string): string => `${capability}-${suffix}`;
  const fleet = await startFleet(host, one, nameOf);
  const stop = new AbortController();
  try {
    for (const definition of one.script?.pipelines ?? []) {
      await post(capstan, '/v1/pipelines', renameCapabilities(definition, nameOf), 201);
    }
    const definition = renameCapabilities(completeDefinition(one), nameOf);
    const { run_id } = await post<Run>(capstan, '/v1/runs', { definition, job: one.job ?? {} }, 202);
    const people = Promise.all([
      answerReviews(capstan, run_id, one, stop.signal),
      controlRun(capstan, run_id, one, fleet.moments),
      sendEvents(capstan, one, nameOf),
    ]);
    const run = await Promise.race([capstan.ended(run_id, 60_000), people.then(() => capstan.ended(run_id))]);
    stop.abort();
    await people;
    const steps = await Promise.all(run.steps.map((step) => readStep(capstan, run_id, step)));
    return {
      outcome: run.state as SeenRun['outcome'],
      error: run.error ?? null,
      output: run.output ?? null,
      steps: steps.flat(),
      calls: fleet.calls(),
      arrivals: fleet.arrivals,
      ...(await readPauses(host, run_id)),
    };
  } finally {
    stop.abort();
    await fleet.stop();
  }
}

/** How the API refuses a definition, or a job. */
export async function seeRefusal(capstan: CapstanClient, one: ConformanceCase): Promise<readonly Refusal[]> {
  const definition = completeDefinition(one);
  if (isRefusal(one.expected) && one.expected.pointer === undefined) {
    const { status, body } = await capstan.request<Problem>('POST', '/v1/runs', { definition, job: one.job });
    return status === 422 ? [{ refused: body.code }] : [];
  }
  const { body } = await capstan.request<Validation>('POST', '/v1/pipelines/validate', definition);
  return body.findings.flatMap(({ severity, code, pointer }) =>
    severity === 'error' ? [{ refused: code, pointer }] : [],
  );
}
