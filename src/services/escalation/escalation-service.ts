/**
 * Ladders as callers of the API use them: one attempt, one advice, or the whole loop; and what the API shows of an
 * escalation.
 */

import type { Logger } from 'pino';
import type {
  AdviseAnswer,
  AdviseRequest,
  Escalation,
  EscalationRequest,
  ExecuteAnswer,
  ExecuteRequest,
} from '../../contracts/escalation.ts';
import type { JsonObject } from '../../contracts/primitives.ts';
import type { CancelSignal } from '../../core/cancellation.ts';
import { toWireAdvice, toWireAttempt } from '../../core/ladder/ladder.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import { aloneWorkflowId, ladderWorkflowId } from '../../core/workflow-names.ts';
import { type EscalationRow, findEscalation } from '../../db/escalation/escalation.ts';
import { readRunRef } from '../../db/run/run-delivery.ts';
import { AppError, refuseField } from '../../errors/app-error.ts';
import type { Caller } from '../access/caller.ts';
import { createOpenCalls } from '../calls/call-service.ts';
import { newId } from '../ids.ts';
import { createPresentSpecs, type SpecDependencies } from '../registry/specs.ts';
import type { RunContexts } from '../run-data/run-context.ts';
import { isAdmin } from '../skills/stored-skill.ts';
import { createSkillMatcher } from '../skills/use.ts';
import { linksToEscalation, type WebLink, type WebPlaces } from '../web-links.ts';
import { openLadderOfJob } from './ladder/opening.ts';
import { createExecuteJob } from './levels/execution.ts';
import { createAnswerReader } from './levels/model-answer.ts';
import type { ModelDependencies } from './levels/model-question.ts';
import { createAdviseOnce } from './once/advice.ts';
import { createAdviceCache } from './once/advice-cache.ts';
import { createExecuteOnce } from './once/execution.ts';

function given<Value, Name extends string>(name: Name, value: Value | null): { [N in Name]?: Value } {
  return (value === null ? {} : { [name]: value }) as { [N in Name]?: Value };
}

/** What the API shows of an escalation. */
function toEscalation(row: EscalationRow, web: WebLink): Escalation {
  return {
    escalation_id: row.escalation_id,
    job_type: row.job_type,
    escalation_level: row.escalation_level,
    payload: {
      prompt: row.prompt,
      ...(row.has_context ? { context: row.context } : {}),
      repo_context: row.repo_context,
      escalation_history: row.escalation_history.map(toWireAttempt),
      escalation_advice: row.escalation_advice.map(toWireAdvice),
      model_spec: row.model_spec,
      active_skills: [...row.active_skills],
    },
    signals: [...row.signals],
    state: row.state,
    ...(row.has_result ? { result: row.result } : {}),
    ...given('error', row.error),
    ...given('run_id', row.run_id),
    ...given('step_id', row.step_id),
    ...given('item', row.item),
    ...given('previous_id', row.previous_id),
    ...given('review_id', row.review_id),
    ...given('skill_id', row.skill_id),
    max_usd: row.max_usd === null ? null : Number(row.max_usd),
    cost_usd: fromNanoUsd(BigInt(row.cost_nano)),
    reserved_usd: fromNanoUsd(BigInt(row.reserved_nano)),
    created_at: row.created_at.toISOString(),
    finished_at: row.finished_at === null ? null : row.finished_at.toISOString(),
    links: {
      self: `/v1/escalations/${row.escalation_id}`,
      ...(row.run_id === null ? {} : { run: `/v1/runs/${row.run_id}` }),
      ...(row.review_id === null ? {} : { review: `/v1/reviews/${row.review_id}` }),
      ...web,
    },
  };
}

interface EscalationDependencies extends SpecDependencies, ModelDependencies {
  readonly contexts: RunContexts;
  readonly fleet: SpecDependencies['fleet'];
  /** Says why a stranger's schema cannot be used, or null. */
  readonly vet: (schema: JsonObject) => Promise<string | null>;
  /** Starts the workflow of a ladder by itself, in the background. */
  readonly startSoon: (escalationId: string) => void;
  readonly logger: Logger;
  readonly web: WebPlaces;
  /** Default: nobody is told. */
  readonly telemetry?: Telemetry;
}

export interface EscalationService {
  /** @throws AppError `request_invalid` for a result_schema that cannot be used */
  create(caller: Caller, request: EscalationRequest): Promise<Escalation>;
  /** @throws AppError `not_found` */
  get(projectId: string, escalationId: string): Promise<Escalation>;
  /** @throws AppError of the routing table, when the level could not be asked */
  execute(caller: Caller, request: ExecuteRequest, signal: CancelSignal): Promise<ExecuteAnswer>;
  /** Goes on when the caller leaves, who then finds the answer. @throws AppError of the routing table */
  advise(caller: Caller, request: AdviseRequest): Promise<AdviseAnswer>;
  /** Ends and settles what is under way. */
  close(): Promise<void>;
}

/** The ladder of a step is a workflow below that of its run. */
async function findLink(
  { db, web }: Pick<EscalationDependencies, 'db' | 'web'>,
  { escalation_id, run_id, step_id, item }: EscalationRow,
): Promise<WebLink> {
  const run = run_id === null ? null : await readRunRef(db, run_id);
  if (run === null || step_id === null)
    return linksToEscalation({ web }, escalation_id, aloneWorkflowId(escalation_id));
  return linksToEscalation(
    { web },
    escalation_id,
    ladderWorkflowId(run, { step_id, item: item ?? 0, round: 1 }),
  );
}

export function createEscalationService(dependencies: EscalationDependencies): EscalationService {
  const { db, logger, startSoon } = dependencies;
  const matcher = createSkillMatcher({ db });
  const reader = createAnswerReader();
  const specs = createPresentSpecs(dependencies);
  const executeJob = createExecuteJob({ ...dependencies, matcher, reader });
  const cache = createAdviceCache({ db, logger });
  const adviseOnce = createAdviseOnce({ ...dependencies, reader, cache });
  const executeOnce = createExecuteOnce({ ...dependencies, executeJob, adviseOnce });
  const open = createOpenCalls();

  return {
    create: async (caller, request) => {
      await requireSchema(dependencies, request);
      const row = await openLadderOfJob({ ...dependencies, specs }, caller, request);
      startSoon(row.escalation_id);
      return toEscalation(row, await findLink(dependencies, row));
    },

    get: async (projectId, escalationId) => {
      const row = await findEscalation(db, projectId, escalationId);
      if (row === undefined) throw new AppError('not_found', `there is no escalation ${escalationId}`);
      return toEscalation(row, await findLink(dependencies, row));
    },

    execute: async (caller, request, signal) => {
      await requireSchema(dependencies, request);
      const { project_id: projectId } = caller;
      const asked = { projectId, owner: newId('escalation'), maxUsd: request.max_usd ?? null };
      return open.run(signal, (stop) =>
        executeOnce({ asker: { ...asked, signal: stop }, request, vouches: isAdmin(caller) }),
      );
    },

    advise: async ({ project_id: projectId }, request) => {
      const asked = { projectId, owner: newId('escalation'), maxUsd: request.max_usd ?? null };
      const { from_level: _, ...answer } = await open.run(null, (stop) =>
        adviseOnce({ ...asked, signal: stop }, request),
      );
      return answer;
    },

    close: async () => {
      await open.close();
      cache.stop();
    },
  };
}

async function requireSchema(
  { vet }: Pick<EscalationDependencies, 'vet'>,
  { result_schema }: Pick<EscalationRequest, 'result_schema'>,
): Promise<void> {
  const fault = result_schema === undefined ? null : await vet(result_schema);
  if (fault === null) return;
  throw refuseField('/result_schema', `result_schema cannot be used: it ${fault}`, 'schema_refused');
}
