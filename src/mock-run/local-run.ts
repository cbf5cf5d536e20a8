/** A run driven in this process: the same machine and driver as in a workflow, from its start to its output. */
import type { PipelineDefinition } from '../contracts/pipeline.ts';
import type { Failure, Json, JsonObject, Priority } from '../contracts/primitives.ts';
import { CancelSource } from '../core/cancellation.ts';
import { checkRunnable } from '../core/definition/checks/check-availability.ts';
import { compileDefinition } from '../core/definition/compile.ts';
import { parseDuration } from '../core/duration.ts';
import { type DrivenRun, driveRun, type RunPorts } from '../core/run/drive.ts';
import type { RunMachineEvent } from '../core/run/machine.ts';
import { planRun } from '../core/run/plan.ts';
import { type RunSnapshot, takeSnapshot } from '../core/run/snapshot.ts';
import { createSchemaCompiler } from '../schemas/schema-compiler.ts';
import {
  createRunBudget,
  type EndedRun,
  evaluateOutput,
  type LocalContext,
  type MockWorld,
  type RunBudget,
} from './local-context.ts';
import { createLocalPorts } from './local-ports.ts';
import type { MockFleet } from './mock-fleet.ts';
import type { MockReviewer } from './mock-reviewer.ts';
import { createRunJournal, createRunWaits } from './run-journal.ts';

interface LocalRunRequest {
  readonly world: MockWorld;
  readonly definition: PipelineDefinition;
  readonly job: JsonObject;
  readonly runId: string;
  readonly jobId: string;
  readonly depth: number;
  readonly priority: Priority;
  readonly ceilingUsd: number | null;
  /** The budget of the run whose step started it; null = none did. */
  readonly above: RunBudget | null;
  readonly reviewer: MockReviewer;
  /** Told once. */
  readonly onEnd: () => void;
  readonly onFault: (error: unknown) => void;
  /** Whether the run should go on from a snapshot, as after a long history. */
  readonly historyPressure: RunPorts['historyPressure'];
}

export interface LocalRun {
  readonly context: LocalContext;
  /** Null while it is under way. */
  end(): EndedRun | null;
  send(event: RunMachineEvent): void;
}

export function startLocalRun(request: LocalRunRequest): LocalRun {
  const { world, definition, job, onEnd, onFault, historyPressure } = request;
  const compiled = compileDefinition(definition);
  const plan = planRun(definition, { compiled });
  const indexOf = new Map(plan.steps.map(({ id }, index) => [id, index]));
  let run: DrivenRun | null = null;
  let ended: EndedRun | null = null;

  const send = (event: RunMachineEvent): void => run?.send(event);
  const waits = createRunWaits(world.time, ({ id, item }) =>
    send({ type: 'step_woken', step: indexOf.get(id) ?? 0, item }),
  );
  const context: LocalContext = {
    ...openContext(request, compiled),
    isCancelled: () => run?.state.phase === 'cancelling',
    wake: waits.wake,
    cancelRun: () => send({ type: 'cancel_requested' }),
  };
  const close = (outcome: EndedRun): void => {
    ended = outcome;
    writeEnd(context, run, outcome);
    onEnd();
  };
  const ports = createLocalPorts(context, plan, waits, {
    onFault,
    historyPressure,
    // Once what made it quiet is done with: the event at hand may have made it less so.
    continueAsNew: () => void Promise.resolve().then(() => restart(run)),
  });
  const drive = (from?: RunSnapshot): void => {
    const driven = driveRun(plan, from);
    run = driven.run;
    run.ended.then((end) => close(closeRun(context, end)), onFault);
    driven.begin(ports);
  };
  const restart = (driven: DrivenRun | null): void => {
    if (driven !== null && isQuiet(driven)) drive(JSON.parse(JSON.stringify(takeSnapshot(driven.state))));
  };

  const refusal = refuseStart(definition, job, world.fleet);
  if (refusal === null) {
    context.journal.log('run.started', null);
    limitTime(world, definition, send);
    drive();
  } else close({ outcome: 'refused', error: refusal });
  return { context, send, end: () => ended };
}

function openContext(
  { world, definition, job, runId, jobId, depth, priority, ceilingUsd, above, reviewer }: LocalRunRequest,
  compiled: LocalContext['compiled'],
): Omit<LocalContext, 'isCancelled' | 'wake' | 'cancelRun'> {
  const { pipeline, version } = definition;
  return {
    world,
    definition,
    compiled,
    runId,
    depth,
    priority,
    reviewer,
    journal: createRunJournal(world.time),
    budget: createRunBudget(ceilingUsd, above),
    stop: new CancelSource(),
    climbing: new CancelSource(),
    scope: { job, run: { id: runId, job_id: jobId, attempt: 1, pipeline, version } },
  };
}

function isQuiet({ state }: DrivenRun): boolean {
  return (
    state.phase === 'running' && state.historyPressure !== 'none' && state.inFlight + state.deciding === 0
  );
}

/** An output that cannot be evaluated makes a success a failure. */
function closeRun(context: LocalContext, { outcome, error }: Awaited<DrivenRun['ended']>): EndedRun {
  if (outcome !== 'succeeded') return { outcome, error };
  const output = evaluateOutput(context);
  return 'error' in output
    ? { outcome: 'failed', error: output.error }
    : { outcome, error, output: output.value };
}

/** Writes the end of the run, and of the steps that it has left out. */
function writeEnd(
  { journal, definition }: LocalContext,
  run: DrivenRun | null,
  { outcome, error }: EndedRun,
): void {
  for (const [index, { id }] of definition.steps.entries()) {
    const state = run?.state.steps[index];
    if (state === 'skipped' || state === 'cancelled') journal.move({ id, item: 0 }, state);
  }
  if (outcome !== 'succeeded' && outcome !== 'failed' && outcome !== 'cancelled') return;
  const data: Json = error === null ? {} : { error: { ...error } };
  journal.log(`run.${outcome}`, null, data);
}

/** Ends the run when its time is over. */
function limitTime(
  { time }: MockWorld,
  { timeout }: PipelineDefinition,
  send: (event: RunMachineEvent) => void,
): void {
  if (timeout === undefined) return;
  const ms = parseDuration(timeout);
  const error = { code: 'run_timeout', message: `the run did not end within ${ms} ms` };
  time.at(time.now() + ms, () => send({ type: 'timed_out', error }));
}

/** Why a local run does not start, as the API would have refused it. */
function refuseStart(definition: PipelineDefinition, job: Json, fleet: MockFleet): Failure | null {
  return checkJob(definition, job) ?? checkCapabilities(definition, fleet);
}

function checkJob({ job_schema }: PipelineDefinition, job: Json): Failure | null {
  if (job_schema === undefined) return null;
  const faults = createSchemaCompiler().compile(job_schema)(job);
  if (faults.length === 0) return null;
  const findings = faults.map(({ pointer, message }) => `${pointer || '/'} ${message}`).join('; ');
  return { code: 'job_invalid', message: `the job does not match job_schema: ${findings}` };
}

/** A call of what nobody offers, and that waits for nobody, stops the run from starting. */
function checkCapabilities(definition: PipelineDefinition, fleet: MockFleet): Failure | null {
  const called = new Set(definition.steps.flatMap(({ capability }) => capability ?? []));
  const present = new Set([...called].filter((name) => fleet.of(name).instances.length > 0));
  const [first, ...more] = checkRunnable(definition, present);
  if (first === undefined) return null;
  const count = more.length === 0 ? 'one error' : `${more.length + 1} errors`;
  return { code: 'definition_invalid', message: `the definition has ${count}: ${first.message}` };
}
