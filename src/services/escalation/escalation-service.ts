/** What callers of the API do with ladders: one attempt, one advice, or the whole loop. */
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
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import { aloneWorkflowId, ladderWorkflowId } from '../../core/workflow-payloads/workflow-ids.ts';
import { type EscalationRow, findEscalation } from '../../db/escalation/escalation.ts';
import { readRunRef } from '../../db/run/run-open.ts';
import { AppError } from '../../errors/app-error.ts';
import type { Caller } from '../access/caller.ts';
import { createOpenCalls } from '../calls/open-calls.ts';
import { newId } from '../ids.ts';
import type { RunContexts } from '../run-data/run-context.ts';
import { createSkillMatcher } from '../skills/match-skills.ts';
import { isAdmin } from '../skills/skill-trust.ts';
import type { WebLink, WebLinks } from '../web-links.ts';
import { toEscalation } from './ladder/escalation-view.ts';
import { openLadderOfJob } from './ladder/open-ladder.ts';
import type { ModelDependencies } from './levels/ask-model.ts';
import { createExecuteJob } from './levels/execute-job.ts';
import { createAnswerReader } from './levels/model-answer.ts';
import { createPresentSpecs, type SpecDependencies } from './levels/present-spec.ts';
import { createAdviceCache } from './once/advice-cache.ts';
import { createAdviseOnce } from './once/advise-once.ts';
import { createExecuteOnce } from './once/execute-once.ts';

export interface EscalationDependencies extends SpecDependencies, ModelDependencies {
  readonly contexts: RunContexts;
  readonly fleet: SpecDependencies['fleet'];
  /** Says why a stranger's schema cannot be used, or null. */
  readonly vet: (schema: JsonObject) => Promise<string | null>;
  /** Starts the workflow of a ladder by itself, in the background. */
  readonly startSoon: (escalationId: string) => void;
  readonly logger: Logger;
  readonly web: WebLinks;
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
    return web.ofEscalation(escalation_id, aloneWorkflowId(escalation_id));
  return web.ofEscalation(escalation_id, ladderWorkflowId(run, { step_id, item: item ?? 0, round: 1 }));
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
  const message = `result_schema cannot be used: it ${fault}`;
  throw new AppError('request_invalid', message, {
    errors: [{ pointer: '/result_schema', code: 'schema_refused', message }],
  });
}
