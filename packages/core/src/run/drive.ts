/**
 * Runs the machine: commands become calls of the ports, and their results become events. The workflow drives a run with
 * activities behind the ports, the local driver with mocks. Both behave alike, because they share this driver.
 */
import type { Failure } from '../contracts/primitives.ts';
import {
  applyEvent,
  type MachineState,
  type RunCommand,
  type RunMachineEvent,
  type RunOutcome,
  type StepVerdict,
  startRun,
  type UnitChange,
} from './machine.ts';
import type { HistoryPressure, Wait } from './machine-state.ts';
import type { PlannedStep, RunPlan } from './plan.ts';
import type { RoundVerdict } from './repeat/rounds.ts';
import { type RunSnapshot, restoreRun } from './snapshot.ts';

/** A step, or one item of it. */
export interface Unit {
  readonly step: PlannedStep;
  /** The step's index in the plan. */
  readonly index: number;
  /** 0 = the step as a whole; items are 1, 2, … */
  readonly item: number;
}

export type UnitEnd =
  | { readonly state: 'succeeded' | 'skipped' }
  | { readonly state: 'failed' | 'unknown' | 'cancelled'; readonly error: Failure };

export interface UnitWaiting {
  readonly state: 'waiting';
  readonly wait: Wait;
}

export type UnitResult = UnitEnd | UnitWaiting | { readonly state: 'escalated' };

/** error: why the condition has no value. */
export interface AnswerVerdict {
  readonly counts: boolean;
  readonly error?: Failure;
}

/** No promise of a port ever rejects: every outcome of a step is an end. */
export interface RunPorts {
  /** Evaluates whether steps run, and how often; results are in their order. */
  decide(steps: readonly PlannedStep[]): Promise<readonly StepVerdict[]>;
  executeStep(unit: Unit): Promise<UnitResult>;
  /** Judges a round that has succeeded, and stores the output of its step if it was the last one. */
  judgeRound(unit: Unit): Promise<RoundVerdict>;
  /** Climbs the ladder of a unit that escalated. */
  escalateStep(unit: Unit): Promise<UnitEnd | UnitWaiting>;
  /** Resumes a unit whose wait is over. */
  resumeStep(unit: Unit, wait: Wait): Promise<UnitResult>;
  /** Ends a unit that escalated or waited, in its current state. */
  giveUpStep(unit: Unit, wait: Wait | null, why?: Failure): Promise<UnitEnd>;
  /** Ends a unit in flight soon: the race that it is in is decided. */
  callOff(unit: Unit, why: Failure): void;
  /** Judges whether the answer of an item that has succeeded counts for `enough`. */
  judgeAnswer(unit: Unit): Promise<AnswerVerdict>;
  /** Starts the wait of a unit, which `step_woken` or its deadline ends. */
  listen(unit: Unit, wait: Wait): void;
  /** Stores ends that nothing else stores. */
  record(changes: readonly UnitChange[]): void;
  /** Asks every running step to end soon. */
  cancelRunning(): void;
  /** Asks every ladder to end soon. */
  cancelEscalations(): void;
  /** The run has begun to rest, or no longer rests; its state has which (M13). */
  restChanged(): void;
  /** The pressure from the length of the run's history. */
  historyPressure(): HistoryPressure;
  /** Continues the run in a new history; nothing is in flight. */
  continueAsNew(): void;
}

export interface MachineEnd {
  readonly outcome: RunOutcome;
  readonly error: Failure | null;
}

export interface DrivenRun {
  readonly state: MachineState;
  readonly ended: Promise<MachineEnd>;
  /** No event may be sent before the run has begun. */
  send(event: RunMachineEvent): void;
}

export interface RunDrive {
  readonly run: DrivenRun;
  /** Called once, when the ports exist: they may read the run, which has its state already. */
  begin(ports: RunPorts): void;
}

/** @param from the snapshot of a run that continues, or how one begins */
export function driveRun(
  plan: RunPlan,
  from: RunSnapshot | { readonly isPaused: boolean } = { isPaused: false },
): RunDrive {
  const { state, commands } = 'steps' in from ? restoreRun(plan, from) : startRun(plan, from.isPaused);
  let end: (value: MachineEnd) => void = () => undefined;
  const ended = new Promise<MachineEnd>((resolve) => {
    end = resolve;
  });
  let ports: RunPorts | null = null;

  const obey = (todo: readonly RunCommand[], by: RunPorts): void => {
    for (const command of todo) {
      if (command.type === 'finish') end({ outcome: command.outcome, error: command.error });
      else obeyCommand(command, { plan, ports: by, send });
    }
  };
  const send = (event: RunMachineEvent): void => {
    if (ports === null) throw new RangeError(`${event.type} was sent to a run that has not begun`);
    const pressure = ports.historyPressure();
    if (pressure !== state.historyPressure) {
      obey(applyEvent(state, { type: 'history_grew', pressure }), ports);
    }
    obey(applyEvent(state, event), ports);
  };

  return {
    run: { state, ended, send },
    begin: (given) => {
      ports = given;
      obey(commands, given);
    },
  };
}

interface Driver {
  readonly plan: RunPlan;
  readonly ports: RunPorts;
  readonly send: (event: RunMachineEvent) => void;
}

function obeyCommand(command: Exclude<RunCommand, { type: 'finish' }>, driver: Driver): void {
  const { plan, ports, send } = driver;
  switch (command.type) {
    case 'decide':
      void ports.decide(command.steps.map((step) => stepAt(plan, step))).then((verdicts) => {
        send({ type: 'decided', steps: command.steps, verdicts });
      });
      break;
    case 'judge': {
      const { step, item } = command;
      void ports.judgeRound(unitOf(plan, command)).then((verdict) => {
        send({ type: 'judged', step, item, verdict });
      });
      break;
    }
    case 'listen':
      ports.listen(unitOf(plan, command), command.wait);
      break;
    case 'record':
      ports.record(command.changes);
      break;
    case 'call_off':
      ports.callOff(unitOf(plan, command), command.why);
      break;
    case 'cancel_running':
      ports.cancelRunning();
      break;
    case 'cancel_escalations':
      ports.cancelEscalations();
      break;
    case 'rest_changed':
      ports.restChanged();
      break;
    case 'continue_as_new':
      ports.continueAsNew();
      break;
    default:
      workOn(command, driver);
  }
}

type UnitCommand = Extract<RunCommand, { type: 'execute' | 'escalate' | 'resume' | 'give_up' }>;

function workOn(command: UnitCommand, { plan, ports, send }: Driver): void {
  const { step, item } = command;
  const unit = unitOf(plan, command);
  const isJudged = unit.step.each?.judges === true;
  void startWork(ports, unit, command).then((result) => {
    if (result.state === 'escalated') send({ type: 'step_escalated', step, item });
    else if (result.state === 'waiting') send({ type: 'step_waiting', step, item, wait: result.wait });
    else if (!isJudged || result.state !== 'succeeded') send({ type: 'step_ended', step, item, ...result });
    else {
      void ports.judgeAnswer(unit).then(({ counts, error }) => {
        const short = counts ? {} : ({ is_short: true, ...(error === undefined ? {} : { error }) } as const);
        send({ type: 'step_ended', step, item, ...result, ...short });
      });
    }
  });
}

function startWork(ports: RunPorts, unit: Unit, command: UnitCommand): Promise<UnitResult> {
  switch (command.type) {
    case 'execute':
      return ports.executeStep(unit);
    case 'escalate':
      return ports.escalateStep(unit);
    case 'resume':
      return ports.resumeStep(unit, command.wait);
    case 'give_up':
      return ports.giveUpStep(unit, command.wait, command.why);
  }
}

function stepAt(plan: RunPlan, index: number): PlannedStep {
  return plan.steps[index] as PlannedStep;
}

function unitOf(plan: RunPlan, { step, item }: { readonly step: number; readonly item: number }): Unit {
  return { step: stepAt(plan, step), index: step, item };
}
