/** Runs the machine and driver of a workflow in this process, from start to output. */

import { CancelSource } from '../cancellation.ts';
import type { Failure } from '../contracts/primitives.ts';
import { checkRunnable } from '../definition/checks/check-availability.ts';
import { compileDefinition } from '../definition/compile.ts';
import { parseDuration } from '../duration.ts';
import { summarizeFindings } from '../json/values.ts';
import { driveRun, type MachineEnd, type RunPorts } from '../run/drive.ts';
import { planRun } from '../run/plan.ts';
import { type RunSnapshot, takeSnapshot } from '../run/snapshot.ts';
import { createSchemaCompiler } from '../schemas/schema-compiler.ts';
import { limitTime, outOfRunTime, type TimeLimit, timeOf } from '../time-limit.ts';
import { noteRaise } from './call-unit.ts';
import { createLocalPorts } from './local-ports.ts';
import { createRunBudget, type EndedRun, type LocalOrder, type LocalRun, type World } from './local-run.ts';
import { evaluateOutput } from './local-values.ts';
import type { MockFleet } from './mock-fleet.ts';
import { logEvent, moveUnit } from './run-journal.ts';

export function startRun(world: World, order: LocalOrder): LocalRun {
  const run = openRun(world, order);
  run.budget.onRaise(() => noteRaise(run));
  const error = checkJob(order) ?? checkCapabilities(order, world.fleet);
  if (error === null) {
    // Deferred until the current event is handled, because it may change what is in flight.
    const continueAsNew = (): void => void Promise.resolve().then(() => restart(run, ports));
    const ports = createLocalPorts(run, continueAsNew);
    logEvent(run, { type: 'run.started' });
    run.limit = limitRun(run);
    drive(run, ports);
  } else close(run, { outcome: 'refused', error });
  return run;
}

function openRun(
  world: World,
  { definition, job, depth, priority, ceilingUsd, above, onEnd, onRest }: LocalOrder,
): LocalRun {
  world.runs += 1;
  const name = world.runs === 1 ? 'local' : `local_${world.runs}`;
  const runId = `run_${name}`;
  const { pipeline, version } = definition;
  const compiled = compileDefinition(definition);
  const plan = planRun(definition, { compiled });
  return {
    world,
    definition,
    compiled,
    plan,
    runId,
    depth,
    priority,
    onEnd,
    onRest,
    beganAt: world.time.now(),
    scope: { job, run: { id: runId, job_id: `job_${name}`, attempt: 1, pipeline, version } },
    budget: createRunBudget(ceilingUsd, above),
    budgetWait: { units: new Set(), review: null },
    stop: new CancelSource(),
    climbing: new CancelSource(),
    units: new Map(),
    events: [],
    driven: null,
    limit: null,
    pauses: { since: null, totalMs: 0 },
    ended: null,
  };
}

function drive(run: LocalRun, ports: RunPorts, from?: RunSnapshot): void {
  const driven = driveRun(run.plan, from);
  run.driven = driven.run;
  driven.run.ended.then((end) => close(run, concludeRun(run, end)), run.world.onFault);
  driven.begin(ports);
}

/** Continues from a snapshot, as after a long history. */
function restart(run: LocalRun, ports: RunPorts): void {
  if (run.driven === null) return;
  const { state } = run.driven;
  const isQuiet = state.phase === 'running' && state.inFlight + state.deciding === 0;
  if (!isQuiet || state.historyPressure === 'none') return;
  drive(run, ports, JSON.parse(JSON.stringify(takeSnapshot(state))));
}

/** A success fails if its output cannot be evaluated. */
function concludeRun(run: LocalRun, { outcome, error }: MachineEnd): EndedRun {
  if (outcome !== 'succeeded') return { outcome, error };
  const output = evaluateOutput(run);
  return 'error' in output
    ? { outcome: 'failed', error: output.error }
    : { outcome, error, output: output.value };
}

function close(run: LocalRun, ended: EndedRun): void {
  run.ended = ended;
  writeEnd(run, ended);
  run.onEnd();
}

/** Writes the end of the run, and of the steps that it skipped. */
function writeEnd(run: LocalRun, { outcome, error }: EndedRun): void {
  for (const [index, { id }] of run.definition.steps.entries()) {
    const state = run.driven?.state.steps[index];
    if (state === 'skipped' || state === 'cancelled') moveUnit(run, { id, item: 0 }, { state });
  }
  if (outcome !== 'succeeded' && outcome !== 'failed' && outcome !== 'cancelled') return;
  logEvent(run, { type: `run.${outcome}`, data: error === null ? {} : { error: { ...error } } });
}

/** Stops the run when its time is over; the time does not pass in a pause. */
function limitRun(run: LocalRun): TimeLimit {
  const { time } = run.world;
  const { timeout } = run.definition;
  const timeoutMs = timeout === undefined ? null : parseDuration(timeout);
  const ports = { nowMs: time.now, arm: (ms: number, fire: () => void) => time.at(time.now() + ms, fire) };
  return limitTime(ports, {
    from: timeOf(timeoutMs, time.now()),
    isPaused: false,
    over: () => run.driven?.send({ type: 'timed_out', error: outOfRunTime(timeoutMs) }),
  });
}

/** Why a run does not start, where the API would refuse it. */
function checkJob({
  definition: { job_schema },
  job,
}: Pick<LocalOrder, 'definition' | 'job'>): Failure | null {
  if (job_schema === undefined) return null;
  const faults = createSchemaCompiler().compile(job_schema)(job);
  if (faults.length === 0) return null;
  return { code: 'job_invalid', message: `the job does not match job_schema: ${summarizeFindings(faults)}` };
}

/** A run does not start if a capability has no instance and the step does not wait for one. */
function checkCapabilities({ definition }: Pick<LocalOrder, 'definition'>, fleet: MockFleet): Failure | null {
  const called = new Set(definition.steps.flatMap(({ capability }) => capability ?? []));
  const present = new Set([...called].filter((name) => fleet.of(name).instances.length > 0));
  const [first, ...more] = checkRunnable(definition, present);
  if (first === undefined) return null;
  const count = more.length === 0 ? 'one error' : `${more.length + 1} errors`;
  return { code: 'definition_invalid', message: `the definition has ${count}: ${first.message}` };
}
