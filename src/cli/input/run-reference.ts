/** Which run a command means, and where the API keeps it. */
import { Run, RunList } from '../../contracts/run.ts';
import type { ApiAnswer, ApiClient } from '../client/api-client.ts';
import { UsageError } from '../errors.ts';

export const latestRun = '@latest';

export function runPath(runId: string, rest = ''): string {
  return `/v1/runs/${encodeURIComponent(runId)}${rest}`;
}

/** @throws UsageError when `@latest` is asked for and there is no run yet */
export async function resolveRunId(client: ApiClient, reference: string): Promise<string> {
  if (reference !== latestRun) return reference;
  const { value } = await client.get('/v1/runs', RunList, { limit: 1, parent: 'none' });
  const [newest] = value.items;
  if (newest === undefined) throw new UsageError('there is no run yet; start one with `capstan run FILE`');
  return newest.run_id;
}

export function getRun(client: ApiClient, runId: string): Promise<ApiAnswer<Run>> {
  return client.get(runPath(runId), Run);
}
