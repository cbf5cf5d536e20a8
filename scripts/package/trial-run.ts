/** One run of one routed step against a Capstan that is up: the least that proves an installation. */
import { setTimeout as sleep } from 'node:timers/promises';
import { startInstance } from '../../test/support/fleet.ts';
import type { Api } from './api.ts';

const longestMs = 60_000;

/** @throws Error when it does not succeed within a minute */
export async function carryOutTrialRun(api: Api): Promise<void> {
  const echo = await startInstance(api, { name: 'echo' });
  try {
    const steps = [{ id: 'say', capability: 'echo', input: { text: 'hello' } }];
    const definition = { pipeline: 'trial', version: '1', steps };
    const { status, body } = await api.request<{ run_id: string }>('POST', '/v1/runs', {
      definition,
      job: {},
    });
    if (status !== 202) throw new Error(`POST /v1/runs: ${status} ${JSON.stringify(body)}`);
    const deadline = performance.now() + longestMs;
    for (;;) {
      const { body: run } = await api.request<{ state: string }>('GET', `/v1/runs/${body.run_id}`);
      if (run.state === 'succeeded') return;
      if (run.state === 'failed' || performance.now() > deadline) {
        throw new Error(`the trial run is ${run.state}`);
      }
      await sleep(100);
    }
  } finally {
    await echo.stop();
  }
}
