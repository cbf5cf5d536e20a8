import { createNameSuggester } from '../../core/nearest-name.ts';
import type { Db } from '../../db/connect.ts';
import { isCapabilityName, listCapabilityNames } from '../../db/spec/capability-names.ts';
import { AppError } from '../../errors/app-error.ts';
import type { FleetPoller } from './fleet/fleet-poller.ts';

export interface CapabilityLookup {
  readonly db: Db;
  readonly fleet: Pick<FleetPoller, 'of'>;
}

/**
 * Asks the database only about names of which nothing is live.
 * @param pointer where the request names it
 * @throws AppError `not_found` for a name that no instance ever registered, with the nearest that is
 */
export async function requireCapability(
  { db, fleet }: CapabilityLookup,
  name: string,
  pointer: string,
): Promise<void> {
  if (fleet.of(name).instances.length > 0 || (await isCapabilityName(db, name))) return;
  const suggestion = createNameSuggester(await listCapabilityNames(db))(name);
  const message = `no instance ever registered the capability ${name}`;
  throw new AppError('not_found', suggestion === undefined ? message : `${message}; ${suggestion}`, {
    errors: [{ pointer, code: 'capability_unknown', message, ...(suggestion && { suggestion }) }],
  });
}
