/** Answers that come later: how `exec` hands a call over, and how its result is sent to the caller. */
import { setTimeout as pause } from 'node:timers/promises';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { CallFailure } from './call-failure.ts';
import type { ExecContext } from './define-capability.ts';

/** Thrown by `later`; recognised by its name, like CallFailure. */
class AnswerLater extends Error {
  override readonly name = 'AnswerLater';
}

export function isAnswerLater(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.name === 'AnswerLater';
}

/**
 * Ends `exec` with 202: the result is sent later to `callbackUrl`, which the author stores before. The definition
 * declares `async`.
 * @throws CallFailure 422 when the caller gave no address, because it needs the answer in place
 */
export function later({ callbackUrl }: Pick<ExecContext, 'callbackUrl'>): never {
  if (callbackUrl !== undefined) throw new AnswerLater('the answer comes later');
  throw new CallFailure(422, 'this call needs its answer in place: it has no X-Callback-Url', {
    code: 'callback_missing',
  });
}

/** late: the call no longer waits, and its cost was settled. again: it has received its answer before. */
export type SentResult = 'accepted' | 'late' | 'again' | 'unknown';

const receipts: Readonly<Record<number, SentResult>> = {
  204: 'accepted',
  404: 'unknown',
  409: 'again',
  410: 'late',
};
const pausesMs = [250, 1_000, 4_000, 15_000, 60_000];

/**
 * Sends the result of a call that was left open: its output, or a CallFailure. It is sent again while the caller does
 * not answer, for a minute and a half.
 * @throws Error when the caller refuses the answer or does not answer
 */
export async function sendResult(callbackUrl: string, result: JsonObject | CallFailure): Promise<SentResult> {
  const body = JSON.stringify(
    result instanceof CallFailure ? failureOf(result) : { ok: true, output: result },
  );
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
  for (const pauseMs of [...pausesMs, null]) {
    const answer = await fetch(callbackUrl, init).catch((error: Error) => error);
    const receipt = answer instanceof Error ? undefined : receipts[answer.status];
    if (receipt !== undefined) return receipt;
    const isPassing = answer instanceof Error || answer.status >= 500;
    const seen = answer instanceof Error ? answer.message : `HTTP ${answer.status}`;
    if (!isPassing || pauseMs === null) throw new Error(`the result was not accepted: ${seen}`);
    await pause(pauseMs);
  }
  return 'unknown';
}

function failureOf({ status, message, retryAfterS, code, report }: CallFailure): object {
  return {
    ok: false,
    error: message,
    status,
    ...(retryAfterS === undefined ? {} : { retry_after_s: Math.ceil(retryAfterS) }),
    ...(code === undefined ? {} : { error_code: code }),
    ...report,
  };
}
