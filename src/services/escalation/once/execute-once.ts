/**
 * One attempt at a level for an outside caller that keeps its own history. A failure is answered with advice and the
 * level to come back at; a success after advice becomes a skill; what only a person can do becomes a review. A level
 * without a model falls through to the next one that has one.
 */
import type { ExecuteAnswer, ExecuteRequest } from '../../../contracts/escalation.ts';
import { historyTextOf } from '../../../core/ladder/error-text.ts';
import type { LevelExecution } from '../../../core/ladder/execution.ts';
import { humanLevel, topLevel } from '../../../core/ladder/labels.ts';
import { noTelemetry, type Telemetry } from '../../../core/telemetry/telemetry.ts';
import { openReview } from '../../reviews/open-review.ts';
import { recordSkillUses } from '../../skills/skill-uses.ts';
import { hasModel, type ModelDependencies } from '../levels/ask-model.ts';
import type { ExecuteJob, LadderJob } from '../levels/execute-job.ts';
import { skillUsesOf } from '../levels/skill-credit.ts';
import { type Asker, readLeft, toCallError } from './advise-once.ts';
import {
  type AnswerDependencies,
  answerFailure,
  answerHuman,
  answerSuccess,
  type ExecuteCall,
} from './execute-answer.ts';

export interface ExecuteOnceDependencies extends AnswerDependencies, Pick<ModelDependencies, 'fleet'> {
  readonly executeJob: ExecuteJob;
  /** Default: nobody is told. */
  readonly telemetry?: Telemetry;
}

/** @throws AppError of the routing table, when the level could not be asked */
export type ExecuteOnce = (call: ExecuteCall) => Promise<ExecuteAnswer>;

function toJob({ projectId }: Asker, request: ExecuteRequest): LadderJob {
  return {
    project_id: projectId,
    job_type: request.job_type,
    prompt: request.prompt,
    context: request.context,
    repo_context: request.repo_context ?? '',
    signals: request.signals,
    malformed: null,
    result_schema: request.result_schema ?? null,
    history: request.escalation_history,
    advice: request.escalation_advice,
  };
}

/** The level, or the next one above it that has a model; 5 when none has. */
function findLevel(dependencies: Pick<ModelDependencies, 'fleet'>, from: number): number {
  if (from === 0) return 0;
  for (let level = from; level <= topLevel; level++) if (hasModel(dependencies, level)) return level;
  return humanLevel;
}

/** A model that answered nonsense is asked once more. */
async function attempt(
  { db, executeJob }: ExecuteOnceDependencies,
  { asker, request }: ExecuteCall,
  level: number,
): Promise<LevelExecution> {
  const job = toJob(asker, request);
  const run = async (malformed: string | null): Promise<LevelExecution> => {
    const key = `${asker.owner}.execute${malformed === null ? '' : '.again'}`;
    const call = { ...asker, key, leftUsd: await readLeft(db, asker), round: 1 };
    return executeJob({ ...job, malformed }, level, call);
  };
  const first = await run(null);
  const { end } = first;
  return end.kind === 'failed' && end.class === 'malformed' ? run(historyTextOf(end.error)) : first;
}

export function createExecuteOnce(dependencies: ExecuteOnceDependencies): ExecuteOnce {
  const { telemetry = noTelemetry } = dependencies;
  return async (call) => {
    const { asker, request } = call;
    const level = findLevel(dependencies, request.level);
    if (level === humanLevel) {
      const why = request.level === humanLevel ? 'it asks for one' : 'no model is there';
      return answerHuman(dependencies, call, { why });
    }
    const execution = await attempt(dependencies, call, level);
    const uses = skillUsesOf(execution, request);
    const { projectId: project_id } = asker;
    await recordSkillUses(dependencies.db, { project_id, occasion: null, uses }, openReview);
    for (const { outcome } of uses) telemetry.metrics.add('skill_uses_total', { outcome });
    return answer(dependencies, call, execution);
  };
}

function answer(
  dependencies: ExecuteOnceDependencies,
  call: ExecuteCall,
  execution: LevelExecution,
): Promise<ExecuteAnswer> {
  const { end } = execution;
  switch (end.kind) {
    case 'succeeded':
      return answerSuccess(dependencies, call, { execution, result: end.result ?? null });
    case 'no_template':
    case 'gave_up':
      return answerFailure(dependencies, call, { execution, failure: end.error });
    case 'unavailable':
      return answerHuman(dependencies, call, { why: 'no model is there' });
    case 'interrupted':
      throw toCallError({ kind: 'interrupted' });
    case 'failed':
      if (end.class === 'config') {
        return answerHuman(dependencies, call, { why: historyTextOf(end.error), kind: 'ops' });
      }
      if (end.class !== 'real' && end.class !== 'malformed') throw toCallError(end);
      return answerFailure(dependencies, call, { execution, failure: end.error });
  }
}
