/**
 * The texts in force of src/db/sql, in the order of their dependencies. Migrations carry texts of their own: these are
 * the reference that migrations have to arrive at (schema.test.ts).
 */
import type { Db } from '../../src/db/connect.ts';
import {
  apiKeyTable,
  auditTable,
  idempotencyTable,
  loginCodeTable,
  personTable,
  projectTable,
  scopedBudgetTable,
  secretTable,
  sessionTable,
} from '../../src/db/sql/access.sql.ts';
import {
  attemptChoiceTable,
  attemptTable,
  attemptTypes,
  cachedAnswerTable,
  cachedResultTable,
  failuresOf,
  keepAnswers,
  loseAttempts,
  settleEnds,
} from '../../src/db/sql/attempts.sql.ts';
import { claimOneByOne, claimSlots, lockBudgets, settleAndClaim } from '../../src/db/sql/claims.sql.ts';
import { clusterTable, schemaFloorTable } from '../../src/db/sql/database.sql.ts';
import {
  eraseAttempts,
  eraseProject,
  eraseUser,
  erasureTable,
  purgeBooks,
  refuseChange,
  refuseErased,
} from '../../src/db/sql/deletion.sql.ts';
import {
  adviceAnswerTable,
  escalationTable,
  refuseShrinking,
  reviewTable,
} from '../../src/db/sql/escalation.sql.ts';
import { eventTable, webhookDeliveryTable, webhookTable } from '../../src/db/sql/events.sql.ts';
import { jobTable, leavingJobTable, mediaObjectTable } from '../../src/db/sql/media.sql.ts';
import {
  allBudgetScopes,
  applyBudgets,
  budgetDemand,
  budgetScopes,
  budgetTable,
  chargeBudgets,
  dayStart,
  drawBudgets,
  ledgerEntryTable,
  moveBudgets,
  nameOfBudget,
  openBudget,
  releaseBudgets,
} from '../../src/db/sql/money.sql.ts';
import {
  definitionTable,
  pipelineAliasTable,
  pipelineVersionTable,
  scheduleTable,
} from '../../src/db/sql/pipelines.sql.ts';
import {
  capabilitySpecTable,
  instanceTable,
  modelAliasTable,
  publisherTable,
  servesFunction,
  touchInstance,
} from '../../src/db/sql/registry.sql.ts';
import {
  beginSteps,
  callLineTable,
  continuedRunTable,
  costBelow,
  queuedCallTable,
  runScopes,
  runTable,
  stepRevisionTable,
  stepTable,
  stopChildren,
  withRunsBelow,
} from '../../src/db/sql/runs.sql.ts';
import {
  repairDecisionTable,
  skillTable,
  skillUseTable,
  skillVersionTable,
} from '../../src/db/sql/skills.sql.ts';
import { callRecordType, leaseSlots, recordCalls, slotLeaseTable } from '../../src/db/sql/slot-leases.sql.ts';

const triggerFunctions = [refuseChange, refuseErased, refuseShrinking, touchInstance];

const tables = [
  projectTable,
  scopedBudgetTable,
  erasureTable,
  apiKeyTable,
  personTable,
  sessionTable,
  loginCodeTable,
  idempotencyTable,
  capabilitySpecTable,
  instanceTable,
  publisherTable,
  modelAliasTable,
  slotLeaseTable,
  secretTable,
  definitionTable,
  pipelineVersionTable,
  pipelineAliasTable,
  jobTable,
  leavingJobTable,
  mediaObjectTable,
  runTable,
  stepTable,
  queuedCallTable,
  callLineTable,
  continuedRunTable,
  escalationTable,
  stepRevisionTable,
  attemptTable,
  attemptChoiceTable,
  cachedResultTable,
  cachedAnswerTable,
  eventTable,
  ledgerEntryTable,
  budgetTable,
  skillTable,
  skillVersionTable,
  skillUseTable,
  repairDecisionTable,
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
  callRecordType,
  dayStart,
  withRunsBelow,
  costBelow,
  stopChildren,
  budgetScopes,
  allBudgetScopes,
  runScopes,
  drawBudgets,
  budgetDemand,
  nameOfBudget,
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
  servesFunction,
  claimSlots,
  claimOneByOne,
  settleAndClaim,
  leaseSlots,
  recordCalls,
  purgeBooks,
  eraseAttempts,
  eraseUser,
  eraseProject,
];

/** @param db without tables */
export async function createFromTexts(db: Db): Promise<void> {
  for (const text of [...triggerFunctions, ...tables, ...functions]) await db.raw(text);
}

/** Replaces the migrations' functions by those in force. */
export async function replaceFunctions(db: Db): Promise<void> {
  for (const text of [...triggerFunctions, ...functions]) {
    if (text.startsWith('\ncreate function '))
      await db.raw(text.replace('create function', 'create or replace function'));
  }
}
