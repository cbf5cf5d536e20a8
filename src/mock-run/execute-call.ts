/** The call of a step, with all its attempts: until it ends, has to wait, or its time is over. */
import type { ErrorCode } from '../contracts/errors.ts';
import type { Failure, Json, JsonObject } from '../contracts/primitives.ts';
import { driveCall } from '../core/call/drive-call.ts';
import { callTimeOf, hasTimeFor, outOfTime } from '../core/call/step-time.ts';
import type { CancelSignal } from '../core/cancellation.ts';
import type { CompiledStep } from '../core/definition/compile/compile-definition.ts';
import { routeOfStep } from '../core/definition/compile/step-route.ts';
import { resolveStepSettings } from '../core/definition/compile/step-settings.ts';
import { capabilityOf } from '../core/definition/step-kind.ts';
import { parseDuration } from '../core/duration.ts';
import type { Wait } from '../core/run/wait.ts';
import { createMockCallPorts } from './call-ports.ts';
import type { LocalContext } from './local-context.ts';
import type { UnitRecord } from './run-journal.ts';

export type CallExecution =
  | { readonly kind: 'succeeded'; readonly output: Json }
  | { readonly kind: 'failed' | 'unknown'; readonly error: Failure }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'waiting'; readonly wait: Wait };

export async function executeCall(
  context: LocalContext,
  step: CompiledStep,
  unit: UnitRecord,
  input: JsonObject,
  stop: CancelSignal,
): Promise<CallExecution> {
  const { world, definition, journal } = context;
  const missing = findMissing(context, step, unit);
  if (missing !== null) return missing;
  const settings = resolveStepSettings(definition, step.definition);
  const endsAt = world.time.now() + callTimeOf(settings.totalTimeoutMs);
  const ports = createMockCallPorts(context);
  for (let round = 1; ; round++) {
    const remainingMs = Math.max(0, endsAt - world.time.now());
    const end = await driveCall(ports, {
      unit,
      input,
      round,
      signal: stop,
      retry: settings.retry,
      resendsWithinMs: remainingMs,
      route: routeOfStep(step.definition, settings, {
        priority: context.priority,
        ceilingUsd: context.budget.ceilingUsd(),
        remainingMs,
      }),
    });
    if (end.kind === 'closed') throw new RangeError('nobody else takes over a call of a mock');
    if (end.kind !== 'retry') return end.kind === 'failed' ? failOrWait(end.error) : end;
    if (!hasTimeFor(end.delayMs, endsAt - world.time.now())) {
      return { kind: 'failed', error: outOfTime(end.error, settings.totalTimeoutMs) };
    }
    journal.move(unit, 'retrying', { data: { error: { ...end.error } } });
    await world.time.sleep(end.delayMs, stop);
    if (stop.aborted) return { kind: 'cancelled' };
  }
}

/** Nobody has registered the capability: the step waits as long as it says, by default not at all. */
function findMissing(
  { world }: LocalContext,
  { definition }: CompiledStep,
  unit: UnitRecord,
): CallExecution | null {
  const capability = capabilityOf(definition);
  world.fleet.require(capability);
  if (world.fleet.of(capability).instances.length > 0) return null;
  unit.missingSince ??= world.time.now();
  const until = unit.missingSince + parseDuration(definition.wait_for_capability ?? '0s');
  if (world.time.now() < until) {
    return { kind: 'waiting', wait: { awaiting: 'capability', until, ref: null } };
  }
  const allowed = definition.wait_for_capability ?? '0s';
  const message = `no instance of ${capability} is registered; wait_for_capability is ${allowed}`;
  return { kind: 'failed', error: { code: 'no_instance' satisfies ErrorCode, message } };
}

/** Money that is used up is waited for. */
function failOrWait(error: Failure): CallExecution {
  return error.code === 'budget_exhausted'
    ? { kind: 'waiting', wait: { awaiting: 'budget', until: null, ref: null } }
    : { kind: 'failed', error };
}
