/**
 * Makes routed calls: the driver of calls over the database and HTTP, with one statement before the request and one
 * after it, or with a leased slot and a record behind the answer. A call that it cannot finish is returned as `retry`, so that the owner of the clock (Temporal for steps)
 * schedules the retry.
 *
 * A claimed call is sent once; its answer is checked against the instance's own schema.
 */

import { hash } from 'node:crypto';
import { type CallPorts, driveCall, driveLongCall, type SentRequest } from '@capstan/core/call/drive-call';
import { type CallOutcome, outputInvalid, unwrapAnswer } from '@capstan/core/call/outcome';
import type { CallEnd, CallLater } from '@capstan/core/call/types';
import { noWrongAnswers } from '@capstan/core/call/wrong-answer';
import type { CancelSignal } from '@capstan/core/cancellation';
import { ReportedKeys } from '@capstan/core/contracts/capability';
import type { ClientProtocol } from '@capstan/core/contracts/model-protocol';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { MediaMention } from '@capstan/core/media';
import type { InstanceSnapshot } from '@capstan/core/routing/types';
import type { TraceHeaders } from '@capstan/core/telemetry/trace-context';
import type { CapabilityCall } from '../../clients/capability-http.ts';
import { readReport } from '../../clients/read-answer.ts';
import type { Ctx } from '../../context.ts';
import { forgetAnswer } from '../../db/attempt/callback.ts';
import { type HeldContent, holdPart } from '../../parts/calls/kept-contents.ts';
import type { CallRequest, CallSecrets, Claimed } from '../../parts/calls/routed-call.ts';
import { pickInput } from '../../parts/fleet/specs.ts';
import { isCallId } from '../../parts/ids.ts';
import { describeForeign } from '../../parts/media/own-media.ts';
import { beginAttemptSpan, observeAttemptEnd, observeClaim } from './call-telemetry.ts';
import { claimInstance } from './claim.ts';
import { countTokens, refuseOfKey } from './key-limits.ts';
import { type AcceptedCall, addressOf, continueLater, readAdopted } from './later-calls.ts';
import { MeteredCall } from './metered-call.ts';
import { reportFailedLoad, reportInstance, reportOverrun } from './report-instance.ts';
import { settleCall } from './reservation.ts';

/**
 * The Idempotency-Key that instances receive: the same for every attempt of a call until a wrong answer is asked for
 * again, which an instance that keeps answers by the key would only repeat, and opaque. A capability knows
 * neither its caller nor its pipeline; our own keys name project, run and step, except those made for one direct call.
 */
export function toOpaqueKey(key: string, wrongAnswers = 0): string {
  if (wrongAnswers > 0) return hash('sha256', `${key} again ${wrongAnswers}`, 'base64url');
  return isCallId(key) ? key : hash('sha256', key, 'base64url');
}

interface DeliveredCall {
  readonly request: CallRequest;
  readonly claimed: Claimed;
  /** Its position in a trace. Default: none. */
  readonly trace?: TraceHeaders | undefined;
  /** Null: its contents are not kept. */
  readonly told: HeldContent | null;
}

interface FormOfInput {
  readonly input: JsonObject;
  /** Null: the neutral form. */
  readonly protocol: ClientProtocol | null;
}

async function deliverCall(
  ctx: Ctx,
  { request, claimed, trace, told }: DeliveredCall,
  signal: CancelSignal,
): Promise<SentRequest | CallLater> {
  const { claim, instance, growing, metered: seen } = claimed;
  const { secrets, onDelta } = request;
  const revealed = secrets ? await reveal(ctx, secrets, claimed) : null;
  if (revealed === 'unrecorded') return { outcome: { kind: 'unsent' }, durationMs: 0 };
  const { input, protocol } = request.forms ? await formInput(ctx, request, instance) : inputOf(request);
  let hasBegun = false;
  // A secret may be split over several parts, which nothing could find.
  const passOn = revealed === null ? onDelta : undefined;
  const callbackUrl = addressOf(ctx, claimed);
  const priced = passOn === undefined ? growing : seen; // without parts, nothing would be seen
  const metered = priced && new MeteredCall(ctx, { request, claimed, priced, protocol }, signal);
  const sending = describeCall(request, claimed, {
    callbackUrl: callbackUrl === undefined ? undefined : await callbackUrl,
    input: revealed?.input ?? input,
    redactor: revealed?.redactor,
    signal: metered?.signal ?? signal,
    onDelta:
      passOn || metered !== null
        ? (delta) => {
            hasBegun = true;
            if (protocol !== null) holdPart(told, delta);
            metered?.note(delta);
            passOn?.(delta, claim.attempt_id);
          }
        : undefined,
    trace,
  });
  const { outcome, durationMs } = await ctx.client.call(sending);
  if (outcome.kind === 'accepted') {
    return acceptLater(ctx, { request, claimed, durationMs, redactor: revealed?.redactor }, signal);
  }
  const sent = { outcome: await checkOutput(ctx, instance, outcome), durationMs, hasBegun };
  return metered?.end(sent, passOn && ((part) => passOn(part, claim.attempt_id))) ?? sent;
}

type SendingOptions = Pick<
  CapabilityCall,
  'callbackUrl' | 'input' | 'redactor' | 'signal' | 'onDelta' | 'trace'
>;

/** Every field is written out, for one hidden class (bench/README.md, "Memory that a call keeps"). */
function describeCall(
  { onProgress, openLog, wrong = noWrongAnswers }: CallRequest,
  { claim, instance: { endpoint }, number: attempt, timeoutMs }: Claimed,
  { callbackUrl, input, redactor, signal, onDelta, trace }: SendingOptions,
): CapabilityCall {
  return {
    endpoint,
    input,
    redactor,
    idempotencyKey: toOpaqueKey(claim.key, wrong.count),
    previousFault: wrong.fault,
    callbackUrl,
    attempt,
    timeoutMs,
    signal,
    onProgress,
    onDelta,
    log: openLog?.({ attempt, endpoint }),
    trace,
  };
}

async function acceptLater(
  ctx: Ctx,
  accepted: AcceptedCall,
  signal: CancelSignal,
): Promise<SentRequest | CallLater> {
  const later = await continueLater(ctx, accepted, signal);
  if ('until' in later) return later;
  return { ...later, outcome: await checkOutput(ctx, accepted.claimed.instance, later.outcome) };
}

/** Takes the answer to a call that was left to its instance. */
async function takeAnswer(
  ctx: Ctx,
  { secrets }: CallRequest,
  claimed: Claimed & Required<Pick<Claimed, 'answered'>>,
): Promise<SentRequest> {
  const sent = await readAdopted(claimed.answered, claimed, await secrets?.redactor());
  return { ...sent, outcome: await checkOutput(ctx, claimed.instance, sent.outcome) };
}

function isAnswered(claimed: Claimed): claimed is Claimed & Required<Pick<Claimed, 'answered'>> {
  return claimed.answered !== undefined;
}

function inputOf({ input }: CallRequest): FormOfInput {
  return { input, protocol: null };
}

/** The input in the form that the instance understands. */
async function formInput(
  { validator }: Ctx,
  request: CallRequest,
  instance: InstanceSnapshot,
): Promise<FormOfInput> {
  const spec = await validator.of(instance.spec_digest as string); // vetted, or it could not be claimed
  const { input, isNative, left } = pickInput(request, instance, spec);
  request.forms?.onChosen({ isNative, left });
  return { input, protocol: isNative ? (request.forms?.protocol ?? null) : null };
}

/** A secret is not sent unless its use is on record. */
async function reveal({ logger }: Ctx, secrets: CallSecrets, claimed: Claimed) {
  try {
    return await secrets.reveal(claimed);
  } catch (error) {
    logger.warn({ err: error, ...claimed.claim.step }, 'a call is not made: its secrets are not available');
    return 'unrecorded';
  }
}

/** An answer as the schema of its instance has it; an answer that breaks the schema is another outcome. */
export async function checkOutput(
  { validator }: Pick<Ctx, 'validator'>,
  { spec_digest }: InstanceSnapshot,
  outcome: CallOutcome,
): Promise<CallOutcome> {
  if (outcome.kind !== 'answered' || spec_digest === null) return outcome;
  const { spec, output: check } = await validator.of(spec_digest);
  const unwrapped = unwrapAnswer(spec, outcome.body);
  if (!unwrapped.ok)
    return { kind: 'rejected', status: 200, message: unwrapped.error, ...readReport(unwrapped.body) };
  if (unwrapped.output === undefined) {
    return { kind: 'malformed', message: 'the answer is {"ok": true} without "output"; both are needed' };
  }
  const errors = await check(unwrapped.output);
  return errors.length === 0
    ? {
        kind: 'answered',
        body: unwrapped.output as JsonObject,
        resident: ReportedKeys.parse(unwrapped.resident),
      }
    : { ...outputInvalid(errors), ...readReport(unwrapped.output as JsonObject) };
}

/** A call makes no ports of its own. */
const portsOf = new WeakMap<Ctx, CallPorts<CallRequest, Claimed>>();

function findCallPorts(ctx: Ctx): CallPorts<CallRequest, Claimed> {
  let ports = portsOf.get(ctx);
  if (ports === undefined) {
    ports = createCallPorts(ctx);
    portsOf.set(ctx, ports);
  }
  return ports;
}

/** The driver's ports over the database and HTTP; those of a mock run are in `packages/core/src/mock-run`. */
function createCallPorts(ctx: Ctx): CallPorts<CallRequest, Claimed> {
  return {
    claim: async (target, tried) => {
      void ctx.keptContents.keeps(target.projectId); // known when the request is sent
      const beganAt = performance.now();
      const end = await claimInstance(ctx, target, tried);
      observeClaim(ctx, target, { end, beganAt });
      return end;
    },
    hold: ({ claim, slot }, lost) => slot?.hold(lost) ?? ctx.leases.hold(claim, lost),
    deliver: (request, claimed, signal) => {
      const trace = beginAttemptSpan(ctx, request, claimed);
      if (isAnswered(claimed)) return takeAnswer(ctx, request, claimed);
      const begin = (isKept: boolean) => {
        const told = isKept ? ctx.keptContents.hold(claimed) : null;
        return deliverCall(ctx, { request, claimed, trace, told }, signal);
      };
      const isKept = ctx.keptContents.keeps(request.projectId);
      return typeof isKept === 'boolean' ? begin(isKept) : isKept.then(begin);
    },
    settle: async (request, claimed, ending) => {
      const call = { request, claimed };
      observeAttemptEnd(ctx, call, ending);
      countTokens(ctx, request, ending);
      reportFailedLoad(ctx, claimed, ending.delivery);
      const isAccepted = await settleCall(ctx, call, ending);
      if (claimed.answered?.body) await forgetAnswer(ctx.db, claimed.claim.attempt_id);
      reportInstance(ctx, call, ending.delivery);
      if (ending.delivery.amount > ending.delivery.reserved)
        await reportOverrun(ctx, claimed, ending.delivery);
      return isAccepted;
    },
    transientTexts: ctx.transientTexts,
    nowMs: () => performance.now(),
    random: Math.random,
  };
}

/** Makes one routed call. */
export async function callCapability(ctx: Ctx, request: CallRequest): Promise<CallEnd> {
  return (await findRefusal(ctx, request)) ?? driveCall(findCallPorts(ctx), request);
}

/**
 * Makes the call of a step, which may be left to its instance.
 * @param adopted an attempt that was, whose answer has come or whose time is over; null: there is none
 */
export async function callForOwner(
  ctx: Ctx,
  request: CallRequest,
  adopted: Claimed | null,
): Promise<CallEnd | CallLater> {
  const refused = adopted === null ? await findRefusal(ctx, request) : null;
  return refused ?? driveLongCall(findCallPorts(ctx), request, adopted);
}

async function findRefusal(ctx: Ctx, request: CallRequest): Promise<CallEnd | null> {
  const refused = refuseOfKey(ctx, request);
  if (refused !== null) return refused;
  // The input is here as the instance would get it, whatever its origin.
  const foreign = await ctx.ownMedia.findForeign(request.projectId, request.input, request.jobId);
  return foreign === null ? null : refuseMedia(foreign);
}

function refuseMedia(foreign: MediaMention): CallEnd {
  const message = describeForeign(foreign);
  const details = { errors: [{ pointer: foreign.pointer, message }] };
  return {
    kind: 'failed',
    error: { code: 'media_unknown', message, details },
    decision: null,
    isRecorded: false,
  };
}
