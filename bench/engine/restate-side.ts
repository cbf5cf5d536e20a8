/**
 * Calls the service through Restate's ingress, which answers with the result. The end is the `completed_at` that
 * Restate has recorded, so that the way back to the client does not count; the way there does.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent } from 'undici';
import { checkResult } from './check-result.ts';
import type { RestateAddresses } from './restate-processes.ts';
import type { Shape } from './shapes.ts';
import type { Side } from './side.ts';

interface Row {
  readonly completed_at: string | null;
}

const waitMs = 5_000;

/** @throws Error when it is not recorded in time */
async function readEnd(adminUrl: string, invocationId: string): Promise<number> {
  const query = `select completed_at from sys_invocation where id = '${invocationId}'`;
  const deadline = performance.now() + waitMs;
  while (performance.now() < deadline) {
    const answer = await fetch(`${adminUrl}/query`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ query }),
    });
    const { rows } = (await answer.json()) as { rows: readonly Row[] };
    const at = rows[0]?.completed_at;
    if (typeof at === 'string') return Date.parse(at);
    await sleep(5);
  }
  throw new Error(`Restate has no end of ${invocationId} after ${waitMs} ms`);
}

export function createRestateSide({ ingressUrl, adminUrl }: RestateAddresses): Side {
  const agent = new Agent({ connections: 64, pipelining: 1 });

  /** @returns the id of the invocation */
  const run = async (shape: Shape, text: string): Promise<string> => {
    const answer = await agent.request({
      origin: ingressUrl,
      path: '/bench/run',
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ shape, text }),
    });
    if (answer.statusCode !== 200) {
      throw new Error(`Restate: ${answer.statusCode} ${await answer.body.text()}`);
    }
    checkResult(shape, text, await answer.body.json());
    return String(answer.headers['x-restate-id']);
  };

  return {
    name: 'restate',
    parts: ['Restate', 'Restate service', 'capability'],
    run: async (shape, text) => void (await run(shape, text)),
    time: async (shape, text) => {
      const startedAt = Date.now();
      return (await readEnd(adminUrl, await run(shape, text))) - startedAt;
    },
    countHistory: async () => null,
    capstan: null,
  };
}
