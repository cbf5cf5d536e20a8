/**
 * Creates everything, in the order in which one part needs the other. A later migration that changes a function drops it
 * where its parameters change, and creates it again from its file.
 */
import type { Knex } from 'knex';
import { applyBudgets } from '../functions/apply-budgets.sql.ts';
import { attemptTypes } from '../functions/attempt-types.sql.ts';
import { beginSteps } from '../functions/begin-steps.sql.ts';
import { budgetDemand } from '../functions/budget-demand.sql.ts';
import { budgetScopes } from '../functions/budget-scopes.sql.ts';
import { chargeBudgets } from '../functions/charge-budgets.sql.ts';
import { claimOneByOne } from '../functions/claim-one-by-one.sql.ts';
import { claimSlots } from '../functions/claim-slots.sql.ts';
import { costBelow } from '../functions/cost-below.sql.ts';
import { dayStart } from '../functions/day-start.sql.ts';
import { eraseAttempts } from '../functions/erase-attempts.sql.ts';
import { eraseProject } from '../functions/erase-project.sql.ts';
import { failuresOf } from '../functions/failures-of.sql.ts';
import { isTight } from '../functions/is-tight.sql.ts';
import { keepAnswers } from '../functions/keep-answers.sql.ts';
import { lockBudgets } from '../functions/lock-budgets.sql.ts';
import { loseAttempts } from '../functions/lose-attempts.sql.ts';
import { moveBudgets } from '../functions/move-budgets.sql.ts';
import { openBudget } from '../functions/open-budget.sql.ts';
import { purgeBooks } from '../functions/purge-books.sql.ts';
import { refuseChange } from '../functions/refuse-change.sql.ts';
import { refuseErased } from '../functions/refuse-erased.sql.ts';
import { refuseShrinking } from '../functions/refuse-shrinking.sql.ts';
import { releaseBudgets } from '../functions/release-budgets.sql.ts';
import { settleAndClaim } from '../functions/settle-and-claim.sql.ts';
import { settleEnds } from '../functions/settle-ends.sql.ts';
import { stopChildren } from '../functions/stop-children.sql.ts';
import { touchInstance } from '../functions/touch-instance.sql.ts';
import { withRunsBelow } from '../functions/with-runs-below.sql.ts';
import { adviceAnswerTable } from '../schema/advice-answer.sql.ts';
import { apiKeyTable } from '../schema/api-key.sql.ts';
import { attemptTable } from '../schema/attempt.sql.ts';
import { attemptChoiceTable } from '../schema/attempt-choice.sql.ts';
import { auditTable } from '../schema/audit.sql.ts';
import { budgetTable } from '../schema/budget.sql.ts';
import { cachedResultTable } from '../schema/cached-result.sql.ts';
import { capabilitySpecTable } from '../schema/capability-spec.sql.ts';
import { clusterTable } from '../schema/cluster.sql.ts';
import { definitionTable } from '../schema/definition.sql.ts';
import { erasureTable } from '../schema/erasure.sql.ts';
import { escalationTable } from '../schema/escalation.sql.ts';
import { eventTable } from '../schema/event.sql.ts';
import { idempotencyTable } from '../schema/idempotency.sql.ts';
import { instanceTable } from '../schema/instance.sql.ts';
import { jobTable } from '../schema/job.sql.ts';
import { leavingJobTable } from '../schema/leaving-job.sql.ts';
import { ledgerEntryTable } from '../schema/ledger-entry.sql.ts';
import { loginCodeTable } from '../schema/login-code.sql.ts';
import { mediaObjectTable } from '../schema/media-object.sql.ts';
import { personTable } from '../schema/person.sql.ts';
import { pipelineAliasTable } from '../schema/pipeline-alias.sql.ts';
import { pipelineVersionTable } from '../schema/pipeline-version.sql.ts';
import { projectTable } from '../schema/project.sql.ts';
import { publisherTable } from '../schema/publisher.sql.ts';
import { reviewTable } from '../schema/review.sql.ts';
import { runTable } from '../schema/run.sql.ts';
import { scheduleTable } from '../schema/schedule.sql.ts';
import { schemaFloorTable } from '../schema/schema-floor.sql.ts';
import { sessionTable } from '../schema/session.sql.ts';
import { skillTable } from '../schema/skill.sql.ts';
import { skillUseTable } from '../schema/skill-use.sql.ts';
import { skillVersionTable } from '../schema/skill-version.sql.ts';
import { stepTable } from '../schema/step.sql.ts';
import { stepRevisionTable } from '../schema/step-revision.sql.ts';

import { webhookTable } from '../schema/webhook.sql.ts';
import { webhookDeliveryTable } from '../schema/webhook-delivery.sql.ts';

const triggerFunctions = [refuseChange, refuseErased, refuseShrinking, touchInstance];

const tables = [
  projectTable,
  erasureTable,
  apiKeyTable,
  personTable,
  sessionTable,
  loginCodeTable,
  idempotencyTable,
  capabilitySpecTable,
  instanceTable,
  publisherTable,
  definitionTable,
  pipelineVersionTable,
  pipelineAliasTable,
  jobTable,
  leavingJobTable,
  mediaObjectTable,
  runTable,
  stepTable,
  escalationTable,
  stepRevisionTable,
  attemptTable,
  attemptChoiceTable,
  cachedResultTable,
  eventTable,
  ledgerEntryTable,
  budgetTable,
  skillTable,
  skillVersionTable,
  skillUseTable,
  reviewTable,
  adviceAnswerTable,
  auditTable,
  scheduleTable,
  webhookTable,
  webhookDeliveryTable,
  schemaFloorTable,
  clusterTable,
];

const functions = [
  attemptTypes,
  dayStart,
  withRunsBelow,
  costBelow,
  stopChildren,
  budgetScopes,
  budgetDemand,
  isTight,
  openBudget,
  applyBudgets,
  moveBudgets,
  chargeBudgets,
  releaseBudgets,
  lockBudgets,
  loseAttempts,
  settleEnds,
  keepAnswers,
  beginSteps,
  failuresOf,
  claimSlots,
  claimOneByOne,
  settleAndClaim,
  purgeBooks,
  eraseAttempts,
  eraseProject,
];

export const createSchema = {
  name: '0001-create-schema',
  up: async (db: Knex): Promise<void> => {
    for (const part of [...triggerFunctions, ...tables, ...functions]) await db.raw(part);
  },
};
