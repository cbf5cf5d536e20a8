import type { Check, DoctorOptions } from './check.ts';
import {
  checkDataFolder,
  checkDependencies,
  checkDisk,
  checkGo,
  checkMediaTools,
  checkNode,
  checkOptionalParts,
  checkPorts,
} from './machine-checks.ts';
import { checkMedia } from './media-check.ts';
import { checkPostgres, checkSearchAttributes, checkStack, checkTemporal } from './stack-checks.ts';

/** In the order in which they matter. */
export async function runChecks(options: DoctorOptions): Promise<readonly Check[]> {
  const groups = await Promise.all([
    [checkNode(), checkDependencies(), checkOptionalParts()],
    Promise.all([checkPostgres(options), checkTemporal(options)]),
    checkMediaTools(options),
    Promise.all([checkGo(options), checkPorts(), checkDataFolder(options), checkDisk(options)]),
    Promise.all([checkMedia(options), checkStack(options), checkSearchAttributes(options)]),
  ]);
  return groups.flat();
}
