/** A transition that executes, at a level, a job or a corrected input of a step. */
import type { EscalationRow } from '../../../db/escalation/escalation.ts';
import { verdictOf } from '../ladder/store-progress.ts';
import type { StoredLadder } from '../ladder/stored-ladder.ts';
import {
  type AdvanceDependencies,
  applyEvent,
  readTask,
  type Turn,
  type Work,
} from '../ladder/transition.ts';
import type { Job } from '../once/execute-job.ts';
import { executeCorrection } from './execute-correction.ts';
import { toLadderEvent } from './execution.ts';

function toJob(row: EscalationRow, { history, advice, command }: StoredLadder): Job {
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

export async function executeLevel(dependencies: AdvanceDependencies, turn: Turn): Promise<Work> {
  const { row, ladder, call, now } = turn;
  const level = ladder.command.type === 'execute' ? ladder.command.level : row.escalation_level;
  const task = await readTask(dependencies, row);
  const execution =
    task === null
      ? await dependencies.executeJob(toJob(row, ladder), level, call)
      : await executeCorrection(dependencies, row, level, call);
  const event = toLadderEvent(execution.end, now);
  if (event === null) return execution.end.kind === 'interrupted' ? execution.end.delayMs : 0;
  const seen = level === 0 ? execution.skills.map(({ skill }) => skill.id) : [];
  const next = {
    ...applyEvent(ladder, event),
    seen_skills: [...new Set([...ladder.seen_skills, ...seen])],
  };
  return {
    next,
    execution,
    event: { kind: 'executed', level, outcome: execution.end.kind },
    verdict: verdictOf(next, execution),
    signals: task?.signals ?? row.signals,
    spec: task?.spec ?? null,
  };
}
