/** Parts of maintenance that do nothing, for tests of one of them. */
import type { DutyParts } from '../../src/use-cases/maintenance.ts';

async function nothing(): Promise<number> {
  return 0;
}

export const idleParts: Omit<DutyParts, 'budgets'> = {
  dueWork: nothing,
  hasLines: () => false,
  endLeftCalls: async () => 0,
  watchStalls: async () => 0,
  reconcileRuns: nothing,
  webhooks: { deliverDue: async () => 0 },
  purgeOld: nothing,
  eraseProjects: nothing,
  watchStarts: nothing,
  fillBack: nothing,
  resealSecrets: nothing,
  media: { sweep: async () => 0 },
  probeDue: nothing,
  beginWarmUps: nothing,
};
