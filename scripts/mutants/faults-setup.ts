/**
 * What tests are given: the servers of scripts/mutants/play-faults.ts, and the sources as they are in the copy,
 * compiled for this run alone. Those that it runs ask for no workflows.
 */
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { compilePackage } from '../../test/support/compile-package.ts';
import { packageVariable } from '../../test/support/compiled-sources.ts';
import { keepPlace } from '../../test/support/places.ts';

export const temporalVariable = 'TEST_TEMPORAL_ADDRESS';

export async function setup({ provide, vitest }: TestProject): Promise<void> {
  const { root } = vitest.config;
  const packageFolder = join(root, 'package');
  await compilePackage(root, packageFolder);
  process.env[packageVariable] = packageFolder;
  process.env.RATE_LIMITS = 'off';
  const databaseUrl = String(process.env.TEST_DATABASE_URL);
  keepPlace('databaseUrl', databaseUrl);
  provide('databaseUrl', databaseUrl);
  provide('temporalAddress', String(process.env[temporalVariable]));
  provide('packageFolder', packageFolder);
  provide('workflowBundle', '');
}
