/**
 * Creates everything, in the order in which one part needs the other. A later migration that changes a function drops it
 * where its parameters change, and creates it again from its file.
 */
import type { Knex } from 'knex';
import {
  apiKeyTable,
  auditTable,
  idempotencyTable,
  loginCodeTable,
  personTable,
  projectTable,
  sessionTable,
} from '../sql/access.sql.ts';
import {
  attemptChoiceTable,
  attemptTable,
  attemptTypes,
  cachedResultTable,
  failuresOf,
  keepAnswers,
  loseAttempts,
  settleEnds,
} from '../sql/attempts.sql.ts';
import { claimOneByOne, claimSlots, lockBudgets, settleAndClaim } from '../sql/claims.sql.ts';
import { clusterTable, schemaFloorTable } from '../sql/database.sql.ts';
import {
  eraseAttempts,
  eraseProject,
  erasureTable,
  purgeBooks,
  refuseChange,
  refuseErased,
} from '../sql/deletion.sql.ts';
import { adviceAnswerTable, escalationTable, refuseShrinking, reviewTable } from '../sql/escalation.sql.ts';
import { eventTable, webhookDeliveryTable, webhookTable } from '../sql/events.sql.ts';
import { jobTable, leavingJobTable, mediaObjectTable } from '../sql/media.sql.ts';
import {
  applyBudgets,
  budgetDemand,
  budgetScopes,
  budgetTable,
  chargeBudgets,
  dayStart,
  isTight,
  ledgerEntryTable,
  moveBudgets,
  openBudget,
  releaseBudgets,
} from '../sql/money.sql.ts';
import {
  definitionTable,
  pipelineAliasTable,
  pipelineVersionTable,
  scheduleTable,
} from '../sql/pipelines.sql.ts';
import { capabilitySpecTable, instanceTable, publisherTable, touchInstance } from '../sql/registry.sql.ts';
import {
  beginSteps,
  costBelow,
  runTable,
  stepRevisionTable,
  stepTable,
  stopChildren,
  withRunsBelow,
} from '../sql/runs.sql.ts';
import { skillTable, skillUseTable, skillVersionTable } from '../sql/skills.sql.ts';

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
