/**
 * Clients of calls under Idempotency-Keys, which retry until they get an answer, and an instance that answers many in
 * parallel.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { ExecAnswer } from '@capstan/core/contracts/decision';
import type { CapstanClient } from './capstan.ts';
import { echo, type Handler } from './fleet.ts';

const againMs = 100;

/** Retries after any failure, as the owner of a key does. @returns the answer */
export async function askUntilAnswered(
  capstan: CapstanClient,
  capability: string,
  key: string,
): Promise<ExecAnswer> {
  for (;;) {
    const path = `/v1/capabilities/${capability}/exec`;
    const asked = capstan.request<ExecAnswer>('POST', path, { input: { key } }, { 'idempotency-key': key });
    const answer = await asked.catch(() => null); // no server is reachable
    if (answer?.status === 200) return answer.body;
    await pause(againMs);
  }
}

export interface Gate {
  readonly handle: Handler;
  /** How many first attempts wait for their answer. */
  waiting(): number;
  /** Answers all of them. */
  open(): void;
}

/** First attempts wait for a common answer; later ones are answered at once. */
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
