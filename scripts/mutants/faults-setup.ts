/**
 * What tests are given: the servers of scripts/mutants/play-faults.ts, and the sources as they are in the copy,
 * compiled for this run alone. Those that it runs ask for no workflows. A migration is frozen text, and a fault in
 * src/db/sql would not reach the database: its functions are created again from there.
 */
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { compilePackage } from '../../test/support/compile-package.ts';
import { packageVariable } from '../../test/support/compiled-sources.ts';
import { changeTemplate } from '../../test/support/database.ts';
import { keepPlace } from '../../test/support/places.ts';
import { replaceFunctions } from '../../test/support/texts-in-force.ts';

export const temporalVariable = 'TEST_TEMPORAL_ADDRESS';

export async function setup({ provide, vitest }: TestProject): Promise<void> {
  const { root } = vitest.config;
  const packageFolder = join(root, 'package');
  await compilePackage(root, packageFolder);
  process.env[packageVariable] = packageFolder;
  process.env.RATE_LIMITS = 'off';
  const databaseUrl = String(process.env.TEST_DATABASE_URL);
  keepPlace('databaseUrl', databaseUrl);
  await changeTemplate(replaceFunctions);
  provide('databaseUrl', databaseUrl);
  provide('temporalAddress', String(process.env[temporalVariable]));
  provide('packageFolder', packageFolder);
  provide('workflowBundle', '');
}
