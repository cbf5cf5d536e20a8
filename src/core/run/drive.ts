/**
 * Runs the machine: commands become calls of the ports, their results become events. The workflow drives a run
 * with activities behind the ports, tests with plain functions; both behave alike because this is all there is.
 */
import type { Failure } from '../../contracts/primitives.ts';
import {
  applyEvent,
  type RunCommand,
  type RunMachineEvent,
  type RunOutcome,
  type RunState,
  startRun,
} from './machine.ts';
import type { PlannedStep, RunPlan } from './plan.ts';

export type StepEnd =
  | { readonly state: 'succeeded' | 'skipped' }
  | { readonly state: 'failed' | 'unknown' | 'cancelled'; readonly error: Failure };

/** No promise of a port ever rejects: whatever happens to the step is an end. */
export interface RunPorts {
  executeStep(step: PlannedStep): Promise<StepEnd | { readonly state: 'escalated' }>;
  /** Climbs the ladder of a step that escalated, or goes on with it after its review. */
  escalateStep(step: PlannedStep): Promise<StepEnd | { readonly state: 'in_review' }>;
  /** Resolves when the review of the step is over. */
  awaitReview(step: PlannedStep): Promise<void>;
  /** Ends a step that escalated, or waited for its review, as it is. */
  giveUpStep(step: PlannedStep): Promise<StepEnd>;
  /** Asks every running step to end soon. */
  cancelRunning(): void;
  /** Asks every ladder to end soon. */
  cancelEscalations(): void;
}

export interface DrivenRun {
  readonly state: RunState;
  readonly ended: Promise<{ readonly outcome: RunOutcome; readonly error: Failure | null }>;
  send(event: RunMachineEvent): void;
}

export const driveRun = (plan: RunPlan, ports: RunPorts): DrivenRun => {
  const { state, commands } = startRun(plan);
  let end: (value: { outcome: RunOutcome; error: Failure | null }) => void;
  const ended = new Promise<{ outcome: RunOutcome; error: Failure | null }>((resolve) => {
    end = resolve;
  });

  const send = (event: RunMachineEvent): void => obey(applyEvent(state, event));
  const stepAt = (index: number): PlannedStep => plan.steps[index] as PlannedStep;

  const tell = (
    step: number,
    result: StepEnd | { readonly state: 'escalated' } | { readonly state: 'in_review' },
  ): void => {
    if (result.state === 'escalated') send({ type: 'step_escalated', step });
    else if (result.state === 'in_review') send({ type: 'step_in_review', step });
    else send({ type: 'step_ended', step, ...result });
  };

  const obeyOne = (command: RunCommand): void => {
    switch (command.type) {
      case 'execute':
        void ports.executeStep(stepAt(command.step)).then((result) => tell(command.step, result));
        break;
      case 'escalate':
        void ports.escalateStep(stepAt(command.step)).then((result) => tell(command.step, result));
        break;
      case 'await_review':
        void ports
          .awaitReview(stepAt(command.step))
          .then(() => send({ type: 'step_reviewed', step: command.step }));
        break;
      case 'give_up':
        void ports.giveUpStep(stepAt(command.step)).then((result) => tell(command.step, result));
        break;
      case 'cancel_running':
        ports.cancelRunning();
        break;
      case 'cancel_escalations':
        ports.cancelEscalations();
        break;
      case 'finish':
        end({ outcome: command.outcome, error: command.error });
        break;
    }
  };

  const obey = (todo: readonly RunCommand[]): void => {
    for (const command of todo) obeyOne(command);
  };

  obey(commands);
  return { state, ended, send };
};
