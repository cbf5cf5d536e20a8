/** The names and the tokens of the key that makes a call: asked before it is routed, counted when an attempt ends (O3). */

import { type CallingKey, describeBeyond, isRun, mayCallName } from '@capstan/core/call/caller';
import type { AttemptEnding } from '@capstan/core/call/drive-call';
import type { CallEnd } from '@capstan/core/call/types';
import { countUsedTokens } from '@capstan/core/call/used-tokens';
import type { ErrorCode } from '@capstan/core/contracts/errors';
import type { Ctx } from '../../context.ts';
import { describeEmpty } from '../../parts/access/key-rates.ts';
import type { CallRequest } from '../../parts/calls/routed-call.ts';

type LimitsCtx = Pick<Ctx, 'keyTokens'>;

function refuseName(caller: CallingKey, capability: string): CallEnd {
  const code: ErrorCode = 'forbidden';
  const error = { code, message: describeBeyond(caller, capability) };
  return { kind: 'failed', error, isRecorded: false, decision: null };
}

function refuseTokens({ keyTokens }: LimitsCtx, { token_rates }: CallingKey): CallEnd | null {
  const empty = keyTokens.take(token_rates, 0);
  if (empty === null) return null;
  const code: ErrorCode = 'rate_limited';
  const error = { code, message: describeEmpty(empty, `${empty.key_id} has used its tokens`) };
  const delayMs = Math.ceil(empty.waitS * 1_000);
  return { kind: 'retry', error, decision: null, delayMs, isFull: false, waitedMs: 0 };
}

/** @returns the end of a call that its key may not make now, else null */
export function refuseOfKey(ctx: LimitsCtx, { caller, route }: CallRequest): CallEnd | null {
  if (isRun(caller)) return null;
  if (!mayCallName(caller, route.capability)) return refuseName(caller, route.capability);
  return caller.token_rates.length === 0 ? null : refuseTokens(ctx, caller);
}

/** The one place where tokens are counted. */
export function countTokens(
  { keyTokens }: LimitsCtx,
  request: CallRequest,
  { delivery }: Pick<AttemptEnding, 'delivery'>,
): void {
  const { caller } = request;
  if (isRun(caller) || caller.token_rates.length === 0) return;
  const tokens = countUsedTokens(request, delivery);
  if (tokens > 0) keyTokens.debit(caller.token_rates, tokens);
}
