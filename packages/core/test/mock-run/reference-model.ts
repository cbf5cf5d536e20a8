/** How every step of a random pipeline ends if the run is never stopped, straight from the rules and nothing else. */
import type { RandomStep } from './any-pipeline.ts';

export type ModelState = 'succeeded' | 'failed' | 'skipped';

export function judgeSteps(steps: readonly RandomStep[]): ReadonlyMap<string, ModelState> {
  const known = new Map<string, ModelState>();
  const byId = new Map(steps.map((step) => [step.id, step]));
  const stateOf = (id: string): ModelState => {
    const before = known.get(id);
    if (before !== undefined) return before;
    const step = byId.get(id) as RandomStep;
    const state = judge(step, step.needs.map(stateOf));
    known.set(id, state);
    return state;
  };
  for (const { id } of steps) stateOf(id);
  return known;
}

function judge({ when, run_if, does, tolerate }: RandomStep, needs: readonly ModelState[]): ModelState {
  const has = (state: ModelState): boolean => needs.includes(state);
  // Without dependencies there is nothing to judge.
  const rule = needs.length === 0 ? 'all_succeeded' : (run_if ?? 'all_succeeded');
  const begins = {
    all_succeeded: !has('failed') && !has('skipped'),
    any_succeeded: has('succeeded'),
    any_failed: has('failed'),
    all_done: true,
  }[rule];
  if (!begins || when === false) return 'skipped';
  if (does === 'pause') return 'succeeded';
  if ('takes' in does) return does.fails ? 'failed' : 'succeeded';
  return does.filter(({ fails }) => fails).length > tolerate ? 'failed' : 'succeeded';
}
