/** The states of a run and of a step, from the run machine: every event in every state of some small runs. */
import type { RunCommand, RunMachineEvent } from '@capstan/core/run/machine';
import { applyEvent, startRun } from '@capstan/core/run/machine';
import type { MachineState, UnitKey, Wait } from '@capstan/core/run/machine-state';
import { unitState } from '@capstan/core/run/machine-state';
import type { PlannedStep, RunPlan } from '@capstan/core/run/plan';
import { type Arrow, drawStates, outside } from './diagram.ts';
import { explore, type Transition } from './explore.ts';

type RunTransition = Transition<MachineState, RunMachineEvent, readonly RunCommand[]>;

function planOf(...steps: readonly Partial<PlannedStep>[]): RunPlan {
  const base = { capability: 'concat', dependencies: [], total_timeout_ms: 1 };
  return { max_in_flight: 2, steps: steps.map((step, at) => ({ id: `s${at}`, ...base, ...step })) };
}

/** In parallel, in sequence, with a decision and another `run_if`, and with a result from an earlier run. */
const plans: readonly RunPlan[] = [
  planOf({}, {}),
  planOf({}, { dependencies: [0] }),
  planOf({ continues: true }, { dependencies: [0], run_if: 'any_failed', decides: true }),
  { ...planOf({}, { dependencies: [0] }), reused: [0] },
];

const error = { code: 'contact_lost', message: 'gone' };
const ends = ['succeeded', 'failed', 'unknown', 'skipped', 'cancelled'] as const;
const ladderWait: Wait = { awaiting: 'review', until: null, ladder: true, ref: null };
const timeWait: Wait = { awaiting: 'time', until: 1, ref: null };

/** Every event of the machine but those that change no state that is drawn: its history is long, a round is judged, a child run rests. */
const eventsOf: {
  readonly [Type in Exclude<RunMachineEvent['type'], 'history_grew' | 'judged' | 'child_rest'>]: (
    key: UnitKey,
  ) => readonly RunMachineEvent[];
} = {
  decided: ({ step }) =>
    [{ type: 'go' } as const, { type: 'skip' } as const, { type: 'fail', error } as const].map((verdict) => ({
      type: 'decided',
      steps: [step],
      verdicts: [verdict],
    })),
  step_escalated: (key) => [{ type: 'step_escalated', ...key }],
  step_waiting: (key) => [ladderWait, timeWait].map((wait) => ({ type: 'step_waiting', ...key, wait })),
  step_woken: (key) => [{ type: 'step_woken', ...key }],
  step_ended: (key) => ends.map((state) => ({ type: 'step_ended', ...key, state, error })),
  paused: () => [{ type: 'paused' }],
  resumed: () => [{ type: 'resumed' }],
  timed_out: () => [{ type: 'timed_out', error }],
  cancel_requested: () => [{ type: 'cancel_requested' }],
};

const keys: readonly UnitKey[] = [0, 1].map((step) => ({ step, item: 0 }));
const events = [
  ...new Map(
    Object.values(eventsOf)
      .flatMap((make) => keys.flatMap(make))
      .map((event) => [JSON.stringify(event), event]),
  ).values(),
];

/** A decision is answered once, while it is open; the machine counts on that. */
function isAnswer(state: MachineState, event: RunMachineEvent): boolean {
  return event.type === 'decided' && state.steps[event.steps[0] ?? 0] !== 'deciding';
}

/** A tenth of the time of structuredClone. The plans have no items, so no fan-out is open. */
function copy(state: MachineState): MachineState {
  return {
    ...state,
    unmet: [...state.unmet],
    good: [...state.good],
    bad: [...state.bad],
    steps: [...state.steps],
    undecided: [...state.undecided],
    ready: [...state.ready],
    openFans: new Set(state.openFans),
    waits: new Map(state.waits),
    woken: new Set(state.woken),
    held: new Map(state.held),
  };
}

export function exploreRuns(apply: typeof applyEvent = applyEvent): RunTransition[] {
  return plans.flatMap((plan) =>
    explore<MachineState, RunMachineEvent, readonly RunCommand[]>({
      starts: [startRun(plan).state],
      events,
      isOver: ({ phase }) => phase === 'finished',
      next: (state, event) => {
        if (isAnswer(state, event)) return { state, effect: [] };
        const after = copy(state);
        return { effect: apply(after, event), state: after };
      },
    }),
  );
}

function runStateOf({ phase, isPaused }: MachineState, commands: readonly RunCommand[] = []): string {
  const finish = commands.find((command) => command.type === 'finish');
  if (finish !== undefined) return finish.outcome;
  return phase === 'running' && isPaused ? 'paused' : phase;
}

export function drawRun(transitions: readonly RunTransition[]): string {
  const arrows = transitions.map(({ before, event, after, effect }) => ({
    from: runStateOf(before),
    to: runStateOf(after, effect),
    label: event.type,
  }));
  return drawStates([{ from: outside, to: 'running', label: '' }, ...arrows], {
    name: 'open',
    members: ['running', 'paused'],
  });
}

function isAbout({ step }: UnitKey, part: RunMachineEvent | RunCommand): boolean {
  if ('step' in part) return part.step === step;
  if ('steps' in part) return part.steps.includes(step);
  return part.type === 'record' && part.changes.some((change) => change.step === step);
}

/** The command that begins or gives up the step, else its event, else what the machine records or does last. */
function labelOf(key: UnitKey, { event, effect }: RunTransition): string {
  const begins = effect.find(
    (command) => isAbout(key, command) && ['decide', 'execute', 'resume', 'give_up'].includes(command.type),
  );
  if (isAbout(key, event)) return event.type;
  const said = begins ?? effect.find((command) => isAbout(key, command)) ?? effect.at(-1);
  return said?.type ?? event.type;
}

export function drawStep(transitions: readonly RunTransition[]): string {
  const starts = plans.flatMap((plan): Arrow[] => {
    const { state } = startRun(plan);
    return state.steps.map((to) => ({ from: outside, to: to === 'reused' ? to : 'pending', label: '' }));
  });
  const arrows = transitions.flatMap((transition) =>
    keys.map((key) => ({
      from: unitState(transition.before, key),
      to: unitState(transition.after, key),
      label: labelOf(key, transition),
    })),
  );
  return drawStates([...starts, ...arrows], { name: 'ended', members: ends });
}
