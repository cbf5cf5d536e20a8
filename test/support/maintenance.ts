/** Parts of maintenance that have nothing to do, for tests of one of them. */
import type { DutyDependencies } from '../../src/services/maintenance.ts';

async function nothing(): Promise<number> {
  return 0;
}

export const idleParts: Omit<DutyDependencies, 'db' | 'budgets'> = {
  dueWork: { attend: nothing },
  delivery: { deliverOverdue: nothing },
  reconcileRuns: nothing,
  restartForgottenRuns: nothing,
  restartForgottenLadders: nothing,
  restartForgottenSchedules: nothing,
  webhooks: { deliverDue: async () => 0 },
  watchCapabilities: nothing,
  escalations: { deliverOverdue: nothing },
  reviews: { deliverOverdue: nothing, expireDue: nothing },
  schedules: { deliverOverdue: nothing },
  purgeOld: nothing,
  eraseProjects: nothing,
  media: { sweep: async () => 0 },
  registry: { probeDue: nothing },
};
