/**
 * Runs the machine: commands become calls of the ports, their results become events. The workflow drives a run
 * with activities behind the ports, the local driver with mocks; both behave alike because this is all there is.
 */
import type { Failure } from '../../contracts/primitives.ts';
import {
  applyEvent,
  type RunCommand,
  type RunMachineEvent,
  type RunOutcome,
  type RunState,
  type StepChange,
  startRun,
  type Verdict,
} from './machine.ts';
import type { PlannedStep, RunPlan } from './plan.ts';
import { type CarriedRun, resumeRun } from './snapshot.ts';
import type { Wait } from './wait.ts';

/** A step, or one item of it. */
export interface Unit {
  readonly step: PlannedStep;
  /** Of the step in its plan. */
  readonly index: number;
  /** 0 = the step as a whole; items are 1, 2, … */
  readonly item: number;
}

export type StepEnd =
  | { readonly state: 'succeeded' | 'skipped' }
  | { readonly state: 'failed' | 'unknown' | 'cancelled'; readonly error: Failure };

export interface StepWaits {
  readonly state: 'waiting';
  readonly wait: Wait;
}

/** No promise of a port ever rejects: whatever happens to the step is an end. */
export interface RunPorts {
  /** Comes first: the run that is driven. */
  attach?(run: DrivenRun): void;
  /** Works out whether steps happen, and how often, in their order. */
  decide(steps: readonly PlannedStep[]): Promise<readonly Verdict[]>;
  executeStep(unit: Unit): Promise<StepEnd | StepWaits | { readonly state: 'escalated' }>;
  /** Climbs the ladder of a unit that escalated. */
  escalateStep(unit: Unit): Promise<StepEnd | StepWaits>;
  /** Goes on with a unit whose wait is over. */
  resumeStep(unit: Unit, wait: Wait): Promise<StepEnd | StepWaits | { readonly state: 'escalated' }>;
  /** Ends a unit that escalated, or waited, as it is. */
  giveUpStep(unit: Unit, wait: Wait | null): Promise<StepEnd>;
  /** From now on `step_woken` of the unit, or its time, ends the wait. */
  listen(unit: Unit, wait: Wait): void;
  /** Ends that nothing else writes. */
  record(changes: readonly StepChange[]): void;
  /** Asks every running step to end soon. */
  cancelRunning(): void;
  /** Asks every ladder to end soon. */
  cancelEscalations(): void;
  /** How long the history of the run has become. */
  rest(): RunState['rest'];
  /** Nothing is under way: the run goes on in a history of its own. */
  moveOn(): void;
}

export interface DrivenRun {
  readonly state: RunState;
  readonly ended: Promise<{ readonly outcome: RunOutcome; readonly error: Failure | null }>;
  send(event: RunMachineEvent): void;
}

/** @param from of a run that moved on, or that begins paused */
export function driveRun(
  plan: RunPlan,
  ports: RunPorts,
  from: CarriedRun | { readonly isPaused: boolean } = { isPaused: false },
): DrivenRun {
  const { state, commands } = 'steps' in from ? resumeRun(plan, from) : startRun(plan, from.isPaused);
  let end: (value: { outcome: RunOutcome; error: Failure | null }) => void;
  const ended = new Promise<{ outcome: RunOutcome; error: Failure | null }>((resolve) => {
    end = resolve;
  });

  const send = (event: RunMachineEvent): void => {
    const rest = ports.rest();
    if (rest !== state.rest) obey(applyEvent(state, { type: 'history_grew', rest }));
    obey(applyEvent(state, event));
  };
  const stepAt = (index: number): PlannedStep => plan.steps[index] as PlannedStep;
  const unitOf = ({ step, item }: { step: number; item: number }): Unit => ({
    step: stepAt(step),
    index: step,
    item,
  });

  const tell = ({ index: step, item }: Unit, result: StepEnd | StepWaits | { state: 'escalated' }): void => {
    if (result.state === 'escalated') send({ type: 'step_escalated', step, item });
    else if (result.state === 'waiting') send({ type: 'step_waiting', step, item, wait: result.wait });
    else send({ type: 'step_ended', step, item, ...result });
  };

  const obeyOne = (command: RunCommand): void => {
    switch (command.type) {
      case 'decide':
        void ports.decide(command.steps.map(stepAt)).then((verdicts) => {
          send({ type: 'decided', steps: command.steps, verdicts });
        });
        break;
      case 'execute': {
        const unit = unitOf(command);
        void ports.executeStep(unit).then((result) => tell(unit, result));
        break;
      }
      case 'escalate': {
        const unit = unitOf(command);
        void ports.escalateStep(unit).then((result) => tell(unit, result));
        break;
      }
      case 'resume': {
        const unit = unitOf(command);
        void ports.resumeStep(unit, command.wait).then((result) => tell(unit, result));
        break;
      }
      case 'give_up': {
        const unit = unitOf(command);
        void ports.giveUpStep(unit, command.wait).then((result) => tell(unit, result));
        break;
      }
      case 'listen':
        ports.listen(unitOf(command), command.wait);
        break;
      case 'record':
        ports.record(command.changes);
        break;
      case 'cancel_running':
        ports.cancelRunning();
        break;
      case 'cancel_escalations':
        ports.cancelEscalations();
        break;
      case 'move_on':
        ports.moveOn();
        break;
      case 'finish':
        end({ outcome: command.outcome, error: command.error });
        break;
    }
  };

  const obey = (todo: readonly RunCommand[]): void => {
    for (const command of todo) obeyOne(command);
  };

  const run: DrivenRun = { state, ended, send };
  ports.attach?.(run);
  obey(commands);
  return run;
}
