/** What tests are given: the database of scripts/mutants/play-faults.ts. Those that it runs ask for nothing else. */
import type { TestProject } from 'vitest/node';
import type {} from '../../test/support/global-setup.ts';

export function setup({ provide }: TestProject): void {
  process.env.RATE_LIMITS = 'off';
  provide('databaseUrl', String(process.env.TEST_DATABASE_URL));
  provide('temporalAddress', '');
  provide('packageFolder', '');
  provide('workflowBundle', '');
}
