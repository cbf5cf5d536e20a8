/** One run of one routed step against a Capstan that is up: the least that proves an installation. */
import { createCapstan } from '@capstan/client';
import { startInstance } from '../../test/support/fleet.ts';
import type { Api } from './api.ts';

const longestMs = 60_000;

/** @throws Error when it does not succeed within a minute */
export async function carryOutTrialRun(api: Api): Promise<void> {
  const echo = await startInstance(api, { name: 'echo' });
  try {
    const steps = [{ id: 'say', capability: 'echo', input: { text: 'hello' } }];
    const definition = { pipeline: 'trial', version: '1', steps };
    const capstan = createCapstan(api);
    const { run_id } = await capstan.start({ definition, job: {} });
    const run = await capstan.wait(run_id, { signal: AbortSignal.timeout(longestMs) });
    if (run.state !== 'succeeded') throw new Error(`the trial run is ${run.state}`);
  } finally {
    await echo.stop();
  }
}
