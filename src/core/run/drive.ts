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
  | { readonly state: 'succeeded' }
  | { readonly state: 'failed' | 'unknown' | 'cancelled'; readonly error: Failure };

export interface RunPorts {
  /** Never rejects: whatever happens to the step is an end. */
  executeStep(step: PlannedStep): Promise<StepEnd>;
  /** Asks every running step to end soon. */
  cancelRunning(): void;
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

  const execute = (index: number): void => {
    void ports
      .executeStep(plan.steps[index] as PlannedStep)
      .then((result) => send({ type: 'step_ended', step: index, ...result }));
  };

  const obey = (todo: readonly RunCommand[]): void => {
    for (const command of todo) {
      switch (command.type) {
        case 'execute':
          execute(command.step);
          break;
        case 'cancel_running':
          ports.cancelRunning();
          break;
        case 'finish':
          end({ outcome: command.outcome, error: command.error });
          break;
      }
    }
  };

  obey(commands);
  return { state, ended, send };
};
