/**
 * Answers that come later.
 * - K1: an address is good for one attempt, by its signature (parts/calls/callback-addresses.ts).
 * - K2: it takes one answer; another is refused.
 * - K3: an answer is stored together with the wake of its step. The step's next execution judges it as one that came in
 *   place (routing/later-calls.ts), so neither this server nor a worker has to live until then.
 * - K4: the deadline counts from the claim. After it, the execution that it wakes ends the attempt as timed out, also
 *   if an answer comes first: that one is late, and settles the money once the attempt has ended.
 * - K5: an answer that no step waits for settles the money of its attempt and changes nothing else.
 * - K6: a process that ends before it knows of the 202 loses the attempt with its lease, unless an answer has come.
 */
import type { Readable } from 'node:stream';
import { judgeSent } from '@capstan/core/call/drive-call';
import { AppError } from '@capstan/core/errors/app-error';
import type { Ctx } from '../../context.ts';
import { settleAndClaim } from '../../db/attempt/attempt.ts';
import { forgetAnswer, listLeftAnswers, loseOverdueCalls, receiveAnswer } from '../../db/attempt/callback.ts';
import { checkOutput } from '../routing/call.ts';
import { claimedOf, laterAnswerBytes, readAdopted, readAttempt, sealBody } from '../routing/later-calls.ts';
import { toLateEnd } from '../routing/reservation.ts';

type SettlingCtx = Pick<Ctx, 'db' | 'fleet' | 'config' | 'validator' | 'transientTexts' | 'secretCipher'>;
type ReceiptCtx = SettlingCtx & Pick<Ctx, 'callbackAddresses' | 'telemetry'>;

/** @throws AppError `body_too_large` */
async function readBounded(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
    size += chunk.length;
    if (size > laterAnswerBytes) {
      throw new AppError('body_too_large', `the answer is larger than the allowed ${laterAnswerBytes} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Nothing shows whether the attempt exists. */
function noSuchAddress(): AppError {
  return new AppError('not_found', 'there is no call that this address answers');
}

/** @throws AppError `not_found`, `callback_answered`, `callback_late`, `body_too_large` */
export async function receiveLaterAnswer(ctx: ReceiptCtx, token: string, stream: Readable): Promise<void> {
  const attemptId = await ctx.callbackAddresses.read(token);
  if (attemptId === null) throw noSuchAddress();
  const body = sealBody(ctx, attemptId, await readBounded(stream));
  const receipt = await ctx.db.transaction(async (trx) => {
    const received = await receiveAnswer(trx, attemptId, body);
    if (received === 'late') await settleLate({ ...ctx, db: trx }, attemptId);
    return received;
  });
  ctx.telemetry.metrics.add('later_answers_total', { outcome: receipt === 'overdue' ? 'late' : receipt });
  switch (receipt) {
    case 'taken':
      return;
    case 'overdue':
    case 'late':
      throw new AppError('callback_late', 'the call no longer waits for its answer; its cost is settled');
    case 'again':
      throw new AppError('callback_answered', 'the call has received its answer, and takes one');
    case 'unknown':
      throw noSuchAddress();
  }
}

/** K5 */
async function settleLate(ctx: SettlingCtx, attemptId: string): Promise<void> {
  const attempt = await readAttempt(ctx, attemptId);
  const { state, run_id, step_id, item } = attempt;
  if (state === 'dispatched' || state === 'lost') {
    const isOfStep = run_id !== null && step_id !== null;
    const step = isOfStep ? { run_id, step_id, item: item ?? 0, revision: 0 } : null;
    const claimed = claimedOf(ctx, attempt, step);
    const sent = await readAdopted(attempt, claimed, undefined);
    const outcome = await checkOutput(ctx, claimed.instance, sent.outcome);
    const before = { countedBefore: 0, retryMax: 0, transientTexts: ctx.transientTexts };
    const delivery = judgeSent(claimed, { ...sent, outcome }, before);
    await settleAndClaim(ctx.db, { ends: [toLateEnd(claimed, delivery)], claims: [] }, true);
  }
  await forgetAnswer(ctx.db, attemptId);
}

const atOnce = 100;

/**
 * Ends what no worker ends: calls whose deadline is over, and answers whose step has ended since they came.
 * @returns how many
 */
export async function endLeftCalls(ctx: SettlingCtx): Promise<number> {
  let ended = await loseOverdueCalls(ctx.db);
  for (const attemptId of await listLeftAnswers(ctx.db, atOnce)) {
    await ctx.db.transaction((trx) => settleLate({ ...ctx, db: trx }, attemptId));
    ended += 1;
  }
  return ended;
}
