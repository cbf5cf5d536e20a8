/**
 * How the steps of a run are dispatched: inline or queued. A step that leaves it open uses the decision made for its
 * route at submission. An at-most-once step is always queued, because a lost worker's inline step is delivered again.
 * The decision considers all instances that a route may lead to, at any cost and load. Calls are inline only if all
 * those instances are known to be fast: one slow instance, or too little data, means queued. Slower or fewer calls
 * never turn queued into inline.
 */
import type { DecidedRoute, DispatchChoice, DispatchRoute, StepDispatch } from '../contracts/decision.ts';
import type { PipelineDefinition, StepDefinition } from '../contracts/pipeline.ts';
import { capabilityOf, dispatchWish, mostRedeliveries, stepKindOf } from '../definition/step-settings.ts';
import { formatDuration } from '../duration.ts';
import { longCallMs } from '../routing/estimate.ts';
import { createRouteFilter, excludeByRoute } from '../routing/filter.ts';
import type { InstanceSnapshot, RouteConstraints } from '../routing/types.ts';

/** Nine of ten calls of a short step take at most this long, ms. */
const mostShortMs = 100;
/** The number of calls that must be known. */
const fewestKnownCalls = 5;

/** Rounds up, so that a value over a limit is shown as over it. */
function showMs(ms: number): number {
  return Math.ceil(ms * 10) / 10;
}

/**
 * The counts of an instance are weights that decay by a fiftieth with each call: five calls in a row weigh 4.8, and
 * four at most 4. Rounding gives the number of calls.
 */
function countCalls({ success_count, failure_count }: InstanceSnapshot): number {
  return success_count + failure_count;
}

/** @param instances every known instance of the capability */
export function chooseDispatch(
  instances: readonly InstanceSnapshot[],
  route: Pick<RouteConstraints, 'versionRange' | 'tags'>,
): DispatchChoice {
  const filter = createRouteFilter(route);
  let weight = 0;
  let slowestMs: number | null = null;
  for (const instance of instances) {
    const { duration_ms, deviation_ms } = instance;
    if (duration_ms === null || excludeByRoute(instance, filter) !== null) continue;
    weight += countCalls(instance);
    slowestMs = Math.max(slowestMs ?? 0, longCallMs(duration_ms, deviation_ms));
  }
  const calls = Math.round(weight);
  if (slowestMs === null) return { how: 'queued', code: 'unknown', calls };
  const known = { calls, p90_ms: showMs(slowestMs) };
  if (slowestMs > mostShortMs) return { how: 'queued', code: 'slow', ...known };
  return calls < fewestKnownCalls
    ? { how: 'queued', code: 'unknown', ...known }
    : { how: 'inline', code: 'short', ...known };
}

/**
 * A decision is made for this many routes of a definition, so that a run's row stays small; steps with other routes are
 * queued.
 */
const mostRoutes = 200;

const undecided: DispatchChoice = { how: 'queued', code: 'unknown' };

function nameRoute({ capability, capability_version, tags }: DispatchRoute): string {
  return capability_version === undefined && tags === undefined
    ? capability
    : JSON.stringify([capability, capability_version, tags]);
}

function routeOf(step: StepDefinition): DispatchRoute {
  const { capability_version, tags } = step;
  return {
    capability: capabilityOf(step),
    ...(capability_version === undefined ? {} : { capability_version }),
    ...(tags === undefined ? {} : { tags }),
  };
}

/** The definition's own choice: null = the step makes no call; auto = it depends on the route. */
function readWish(definition: PipelineDefinition, step: StepDefinition): DispatchChoice | 'auto' | null {
  if (stepKindOf(step) !== 'call') return null;
  const wish = dispatchWish(definition, step);
  if (wish !== 'auto') return { how: wish, code: 'asked' };
  return mostRedeliveries(definition, step) === 0 ? { how: 'queued', code: 'at_most_once' } : 'auto';
}

/** The routes to decide at each submission, without duplicates. */
export function listOpenRoutes(definition: PipelineDefinition): readonly DispatchRoute[] {
  const routes = new Map<string, DispatchRoute>();
  for (const step of definition.steps) {
    if (routes.size === mostRoutes) break;
    if (readWish(definition, step) !== 'auto') continue;
    const route = routeOf(step);
    routes.set(nameRoute(route), route);
  }
  return [...routes.values()];
}

/** @returns null for a step that makes no call */
export function createDispatchOf(
  definition: PipelineDefinition,
  decided: readonly DecidedRoute[],
): (step: StepDefinition) => DispatchChoice | null {
  const byRoute = new Map(
    decided.map(({ capability, capability_version, tags, ...choice }) => [
      nameRoute({ capability, capability_version, tags }),
      choice,
    ]),
  );
  return (step) => {
    const choice = readWish(definition, step);
    return choice === 'auto' ? (byRoute.get(nameRoute(routeOf(step))) ?? undecided) : choice;
  };
}

function countAnswers(calls: number): string {
  if (calls === 0) return 'no call';
  return calls === 1 ? '1 call' : `${calls} calls`;
}

function explain({ code, p90_ms = 0, calls = 0 }: DispatchChoice): string {
  switch (code) {
    case 'short':
      return `9 of 10 calls take at most ${formatDuration(p90_ms)}, as far as ${calls} calls show; up to ${formatDuration(mostShortMs)} is short`;
    case 'slow':
      return `9 of 10 calls take up to ${formatDuration(p90_ms)}; up to ${formatDuration(mostShortMs)} is short`;
    case 'unknown':
      return `its instances have answered ${countAnswers(calls)} so far; ${fewestKnownCalls} answers are needed to know whether its calls are short`;
    case 'asked':
      return 'the definition says so';
    case 'at_most_once':
      return 'retry.max is 0, and what is not queued may be delivered again';
  }
}

/** The number of reasons shown for a run. */
const maxReasons = 20;

const maxRouteLength = 200;

/** A route on one line of bounded length, whatever its tags. */
function describeRoute({ capability, capability_version, tags }: DispatchRoute): string {
  const version = capability_version === undefined ? '' : ` ${capability_version}`;
  const text = `${capability}${version}${tags === undefined ? '' : ` [${tags.join(', ')}]`}`;
  return text.slice(0, maxRouteLength).replaceAll(/\s+/g, ' ');
}

/** Why the calls of a run are inline or queued, without duplicates: `echo is inline: 9 of 10 calls take at most …`. */
export function listDispatchReasons(
  definition: PipelineDefinition,
  decided: readonly DecidedRoute[],
): readonly string[] {
  const dispatchOf = createDispatchOf(definition, decided);
  const reasons = new Set<string>();
  for (const step of definition.steps) {
    const choice = dispatchOf(step);
    if (choice === null) continue;
    const reason = `${describeRoute(routeOf(step))} is ${choice.how}: ${explain(choice)}`;
    if (reasons.size === maxReasons && !reasons.has(reason)) return [...reasons, '…'];
    reasons.add(reason);
  }
  return [...reasons];
}

/** Adds the explanation for people. */
export function explainDispatch<Choice extends DispatchChoice>(choice: Choice): Choice & StepDispatch {
  return { ...choice, message: explain(choice) };
}
