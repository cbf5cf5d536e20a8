/** Clients of calls under Idempotency-Keys, which ask until they are answered, and an instance that answers many at once. */
import { setTimeout as pause } from 'node:timers/promises';
import type { ExecAnswer } from '../../src/contracts/decision.ts';
import type { CapstanClient } from './capstan.ts';
import { echo, type Handler } from './fleet.ts';

const againMs = 100;

/** Asks again whatever happens, as the owner of a key does. @returns the answer */
export async function askUntilAnswered(
  capstan: CapstanClient,
  capability: string,
  key: string,
): Promise<ExecAnswer> {
  for (;;) {
    const path = `/v1/capabilities/${capability}/exec`;
    const asked = capstan.request<ExecAnswer>('POST', path, { input: { key } }, { 'idempotency-key': key });
    const answer = await asked.catch(() => null); // nobody is there
    if (answer?.status === 200) return answer.body;
    await pause(againMs);
  }
}

export interface Gate {
  readonly handle: Handler;
  /** How many first attempts wait to be answered. */
  waiting(): number;
  /** Answers all of them. */
  open(): void;
}

/** First attempts wait until they are answered together; later ones are answered at once. */
export function createGate(): Gate {
  const held: (() => void)[] = [];
  return {
    handle: (exec, response) => {
      if (exec.headers['x-attempt'] === '1') held.push(() => void echo(exec, response));
      else void echo(exec, response);
    },
    waiting: () => held.length,
    open: () => {
      for (const answer of held.splice(0)) answer();
    },
  };
}
