/** The ports of one transition of a stored ladder: its row, its step's inputs, the routed calls of its models. */
import type { CancelSignal } from '../../../core/cancellation.ts';
import type { LadderPorts } from '../../../core/ladder/drive.ts';
import type { Ladder } from '../../../core/ladder/ladder.ts';
import { fromNanoUsd, toNanoUsd } from '../../../core/money/nano-usd.ts';
import type { EscalationRow } from '../../../db/escalation/escalation.ts';
import { type AdvisorDependencies, askAdvisor } from '../levels/ask-advisor.ts';
import type { ModelCall } from '../levels/ask-model.ts';
import { createCorrectionPorts, type StepLevelDependencies } from '../levels/correction-ports.ts';
import type { ExecuteJob, LadderJob } from '../levels/execute-job.ts';
import { showProblem } from '../prompts/advice-facts.ts';
import { type EscalatedTask, readStepTask, type TaskDependencies } from './escalated-task.ts';
import { fingerprintOf } from './fingerprint.ts';
import { consultOthers } from './follow-leader.ts';
import { stepOf } from './stored-ladder.ts';

export interface TransitionDependencies extends StepLevelDependencies, TaskDependencies, AdvisorDependencies {
  readonly executeJob: ExecuteJob;
}

/** The row of which a transition is made. */
export interface TransitionSource {
  readonly row: EscalationRow;
  readonly ladder: Ladder;
  /** Unix seconds. */
  readonly now: number;
  readonly signal: CancelSignal;
}

export interface StoredLadderPorts {
  readonly ports: LadderPorts;
  /** The task of the step as the transition has read it; null when it did not, and for a job by itself. */
  readTask(): EscalatedTask | null;
}

export function createLadderPorts(
  dependencies: TransitionDependencies,
  { row, ladder, now, signal }: TransitionSource,
): StoredLadderPorts {
  const call = callOf(row, ladder, signal);
  let known: EscalatedTask | null = null;
  const readTask = async (): Promise<EscalatedTask> => {
    known ??= await readStepTask(dependencies, row);
    return known;
  };
  const isStep = stepOf(row) !== null;
  const ports: LadderPorts = {
    now,
    fingerprintOf,
    work: isStep
      ? {
          kind: 'step',
          correction: async () => {
            const task = await readTask();
            return createCorrectionPorts(dependencies, task, { ...call, priority: task.priority });
          },
        }
      : { kind: 'job', execute: (level) => dependencies.executeJob(toJob(row, ladder), level, call) },
    consultOthers: async () => {
      const signals = isStep ? (await readTask()).signals : row.signals;
      return consultOthers(dependencies, { row, ladder, now, signals });
    },
    advise: async (command) => {
      const task = isStep ? await readTask() : null;
      const facts = showProblem({ row, ladder, task }, command);
      const asked = task === null ? call : { ...call, priority: task.priority };
      return askAdvisor(dependencies, asked, { level: command.from_level, facts });
    },
  };
  return { ports, readTask: () => known };
}

/** Of the calls of models that the transition of this row makes. */
export function modelKeyOf({ escalation_id, transition }: EscalationRow): string {
  return `${escalation_id}.${transition}`;
}

function callOf(row: EscalationRow, { command }: Ladder, signal: CancelSignal): ModelCall {
  return {
    projectId: row.project_id,
    runId: row.run_id,
    key: modelKeyOf(row),
    leftUsd: leftOf(row),
    round: 'transients' in command ? command.transients + 1 : 1,
    signal,
  };
}

function leftOf({ max_usd, cost_nano, reserved_nano }: EscalationRow): number | null {
  if (max_usd === null) return null;
  const left = toNanoUsd(Number(max_usd)) - BigInt(cost_nano) - BigInt(reserved_nano);
  return fromNanoUsd(left > 0n ? left : 0n);
}

function toJob(row: EscalationRow, { history, advice, command }: Ladder): LadderJob {
  return {
    project_id: row.project_id,
    job_type: row.job_type,
    prompt: row.prompt,
    signals: row.signals,
    repo_context: row.repo_context,
    result_schema: row.result_schema,
    history,
    advice,
    context: row.has_context ? row.context : undefined,
    malformed: 'malformed' in command ? command.malformed : null,
  };
}
