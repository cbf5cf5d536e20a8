/** The one paid instance that all runs call. */

import type { Api } from '../../scripts/package/api.ts';
import { echo, type Instance, startInstance } from '../../test/support/fleet.ts';

export async function startFleet(api: Api): Promise<Instance> {
  const cost_model = { type: 'per_call', rate_usd: 0.000_001 };
  const instance = await startInstance(api, { name: 'growth', cost_model, max_concurrency: 500 });
  instance.handle = echo;
  return instance;
}
