/**
 * Today's expected times for the steps of an open run. A step that has begun takes as long as planned, and at least
 * until now; any other step begins when the last of its dependencies is expected to have ended.
 */
import type { Plan, PlannedStepView } from '@capstan/core/contracts/plan';
import type { Awaiting, RunStep } from '@capstan/core/contracts/run-step';
import { createGraph } from '@capstan/core/graph/dag';
import { endedStepStates } from '@capstan/core/run/ended-steps';
import type { DrawnEdge } from '../graph/drawn-step.ts';
import { edgesOfSpan, type TimeSpan } from './scale.ts';

/** A plan's view of a run, independent of its progress. */
export interface Outlook {
  readonly planned: readonly PlannedStepView[];
  /** Indexes of `planned`: each step after its dependencies. */
  readonly order: readonly number[];
  readonly predecessors: readonly (readonly number[])[];
}

export interface StepGhost {
  readonly step_id: string;
  /** Unix time, ms. */
  readonly from: number;
  readonly to: number;
  readonly expected_usd: number;
  readonly hasBegun: boolean;
  /** Whether it happens is independent of the ends of other steps. */
  readonly isSure: boolean;
  /** The number of items is unknown: time and money are those of one. */
  readonly isOfOneItem: boolean;
  /** It makes no call: a wait or a review. */
  readonly isIdle: boolean;
  /** Its duration is unknown: a review, or a wait that time alone does not end. */
  readonly isOpenEnded: boolean;
  /** What it waits for then; absent: a review. */
  readonly awaits?: Awaiting;
}

export function createOutlook({ steps }: Pick<Plan, 'steps'>, edges: readonly DrawnEdge[]): Outlook {
  const before = new Map(steps.map(({ id }): [string, string[]] => [id, []]));
  for (const { from, to } of edges) before.get(to)?.push(from);
  const graph = createGraph(steps.map(({ id }) => ({ id, depends_on: before.get(id) ?? [] })));
  return { planned: steps, order: graph.order, predecessors: graph.predecessors };
}

function beginOf(step: RunStep | undefined): number | null {
  const began = Date.parse(step?.started_at ?? '');
  return Number.isFinite(began) ? began : null;
}

/** Returns one for each step that has not ended and may happen, in the order of the definition. O(steps + edges). */
export function expectSteps(
  { planned, order, predecessors }: Outlook,
  steps: readonly RunStep[],
  now: number,
): ReadonlyMap<string, StepGhost> {
  const known = new Map(steps.map((step) => [step.id, step]));
  const ends = planned.map(() => now);
  const ghosts: (StepGhost | undefined)[] = planned.map(() => undefined);
  for (const index of order) {
    const plan = planned[index];
    const step = plan === undefined ? undefined : known.get(plan.id);
    if (plan === undefined || (step !== undefined && endedStepStates.has(step.state))) continue;
    const began = beginOf(step);
    const ready = (predecessors[index] ?? []).reduce((latest, at) => Math.max(latest, ends[at] ?? now), now);
    const from = began ?? ready;
    const isLeftOut = plan.happens === 'no' && began === null;
    const to = isLeftOut ? from : from + plan.duration_ms;
    ends[index] = Math.max(now, to);
    if (isLeftOut) continue;
    const isOpenEnded = plan.review !== undefined || (step !== undefined && isHeld(step));
    const awaits = step !== undefined && isHeld(step) ? step.awaiting : undefined;
    const held = awaits === undefined ? {} : { awaits };
    ghosts[index] = toGhost(plan, { from, to, isOpenEnded, hasBegun: began !== null, ...held });
  }
  return new Map(ghosts.flatMap((ghost) => (ghost === undefined ? [] : [[ghost.step_id, ghost]])));
}

function isHeld({ state, awaiting }: RunStep): boolean {
  return state === 'in_review' || (awaiting !== undefined && awaiting !== 'time' && awaiting !== 'run');
}

type GhostFacts = Pick<StepGhost, 'from' | 'to' | 'hasBegun' | 'isOpenEnded' | 'awaits'>;

function toGhost(plan: PlannedStepView, facts: GhostFacts): StepGhost {
  return {
    ...facts,
    step_id: plan.id,
    expected_usd: plan.cost_usd.expected,
    isSure: plan.happens === 'yes' || facts.hasBegun,
    isOfOneItem: plan.items === null,
    isIdle: plan.capability === undefined && plan.pipeline === undefined,
  };
}

export interface Remainder {
  readonly steps: number;
  readonly usd: number;
  /** Unix time, ms: the expected end of the last step. */
  readonly until: number;
  /** It may end later, because of a review or another wait. */
  readonly isOpenEnded: boolean;
  /** What its end depends on then, if it is only one thing. */
  readonly awaits?: Awaiting;
}

/** The steps still to begin, and the expected end of all. */
export function remainderOf(ghosts: ReadonlyMap<string, StepGhost>, now: number): Remainder {
  const remainder = { steps: 0, usd: 0, until: now, isOpenEnded: false };
  const awaited = new Set<Awaiting>();
  for (const { hasBegun, expected_usd, to, isOpenEnded, awaits = 'review' } of ghosts.values()) {
    remainder.until = Math.max(remainder.until, to);
    remainder.isOpenEnded ||= isOpenEnded;
    if (isOpenEnded) awaited.add(awaits);
    if (hasBegun) continue;
    remainder.steps += 1;
    remainder.usd += expected_usd;
  }
  const [awaits, ...others] = awaited;
  return awaits === undefined || others.length > 0 ? remainder : { ...remainder, awaits };
}

/** Expected times of activity. */
export function busyOfGhosts(ghosts: ReadonlyMap<string, StepGhost>): TimeSpan[] {
  return [...ghosts.values()].flatMap((ghost) => (ghost.isIdle ? edgesOfSpan(ghost) : [ghost]));
}
