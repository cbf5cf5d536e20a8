/**
 * Where today's plan expects the steps of a run that goes on. A step that has begun takes as long as planned, and at
 * least until now; each other one begins when the last of those that it depends on is expected to have ended.
 */
import type { Plan, PlannedStepView } from '../../../src/contracts/plan.ts';
import type { RunStep } from '../../../src/contracts/run.ts';
import { createGraph } from '../../../src/core/graph/dag.ts';
import { endedStepStates } from '../../../src/core/run/ended-steps.ts';
import type { DrawnEdge } from '../graph/drawn-step.ts';
import { edgesOfSpan, type TimeSpan } from './scale.ts';

/** What a plan says of a run, whatever has happened of it. */
export interface Outlook {
  readonly planned: readonly PlannedStepView[];
  /** Indexes of `planned`: each step after all it depends on. */
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
  /** Whether it happens does not depend on how other steps end. */
  readonly isSure: boolean;
  /** How many items it has is not known yet: time and money are those of one. */
  readonly isOfOneItem: boolean;
  /** It calls nobody: a pause, or a question to a person. */
  readonly isIdle: boolean;
  /** Nobody can say how long it takes: it is a question to a person, or waits for what does not come by itself. */
  readonly isOpenEnded: boolean;
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

/** Of each step that has not ended and may happen, in the order of the definition. O(steps + edges). */
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
    ghosts[index] = toGhost(plan, { from, to, isOpenEnded, hasBegun: began !== null });
  }
  return new Map(ghosts.flatMap((ghost) => (ghost === undefined ? [] : [[ghost.step_id, ghost]])));
}

function isHeld({ state, awaiting }: RunStep): boolean {
  return state === 'in_review' || (awaiting !== undefined && awaiting !== 'time' && awaiting !== 'run');
}

type GhostFacts = Pick<StepGhost, 'from' | 'to' | 'hasBegun' | 'isOpenEnded'>;

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
  /** Unix time, ms: the last end of all that has not ended. */
  readonly until: number;
  /** It may end later, because somebody or something is waited for. */
  readonly isOpenEnded: boolean;
}

/** What is still to begin, and when all of it is expected to have ended. */
export function remainderOf(ghosts: ReadonlyMap<string, StepGhost>, now: number): Remainder {
  const remainder = { steps: 0, usd: 0, until: now, isOpenEnded: false };
  for (const { hasBegun, expected_usd, to, isOpenEnded } of ghosts.values()) {
    remainder.until = Math.max(remainder.until, to);
    remainder.isOpenEnded ||= isOpenEnded;
    if (hasBegun) continue;
    remainder.steps += 1;
    remainder.usd += expected_usd;
  }
  return remainder;
}

/** When something is expected to be under way. */
export function busyOfGhosts(ghosts: ReadonlyMap<string, StepGhost>): TimeSpan[] {
  return [...ghosts.values()].flatMap((ghost) => (ghost.isIdle ? edgesOfSpan(ghost) : [ghost]));
}
