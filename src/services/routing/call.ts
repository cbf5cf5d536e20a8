/**
 * The routed call of this process: the driver of calls over the database and HTTP. One statement before the
 * request and one after it. What it cannot finish it hands back as `retry`, so that the owner of the clock
 * (Temporal for steps) decides when to come again.
 *
 * Sends a claimed call once; its answer is checked against the instance's own schema.
 */
import { hash } from 'node:crypto';
import type { Logger } from 'pino';
import type { CapabilityClient } from '../../clients/capability-http.ts';
import type { JsonObject } from '../../contracts/primitives.ts';
import { type CallPorts, driveCall } from '../../core/call/drive-call.ts';
import { readTransientTexts } from '../../core/call/judge.ts';
import { type CallOutcome, outputInvalid, unwrapAnswer } from '../../core/call/outcome.ts';
import type { CallEnd } from '../../core/call/types.ts';
import type { CancelSignal } from '../../core/cancellation.ts';
import type { InstanceSnapshot } from '../../core/routing/types.ts';
import { noTelemetry, type Telemetry } from '../../core/telemetry/telemetry.ts';
import type { Claim } from '../../db/attempt/attempt.ts';
import type { LeaseRenewer } from '../delivery/lease-renewer.ts';
import type { FleetPoller } from '../fleet/fleet-poller.ts';
import { describeForeign, type OwnMedia } from '../jobs.ts';
import type { InstanceReports } from '../registry/probing.ts';
import type { SchemaValidator } from '../registry/specs.ts';
import type { SpeedRecorder } from '../registry/speed-recorder.ts';
import type { AttemptWriter } from './attempt-writer.ts';
import { type Breakers, createHalfOpenProbes, reportInstance } from './breakers.ts';
import { createCallObserver } from './call-telemetry.ts';
import { type ClaimDependencies, claimInstance, createWaitQueue } from './claim.ts';
import { createClaimPrefetch, giveBack, prefetchClaim } from './claim-prefetch.ts';
import { settleCall } from './reservation.ts';
import type { CallRequest, CallRouter, Claimed } from './routed-call.ts';

/**
 * The Idempotency-Key that instances are sent: the same for every attempt of a call, and nothing that could be read out
 * of it. A capability knows neither its caller nor its pipeline; our own keys name project, run and step.
 */
export function toOpaqueKey(key: string): string {
  return hash('sha256', key, 'base64url');
}

interface DeliverDependencies {
  readonly client: Pick<CapabilityClient, 'call'>;
  readonly validator: Pick<SchemaValidator, 'spec' | 'validateOutput'>;
}

interface DeliveredCall {
  readonly request: CallRequest;
  readonly claimed: Claimed;
  /** Where it stands in a trace. Default: in none. */
  readonly traceparent?: string | undefined;
}

/** @returns its duration is that of the request alone */
async function deliverCall(
  { client, validator }: DeliverDependencies,
  { request, claimed, traceparent }: DeliveredCall,
  signal: CancelSignal,
): Promise<{ readonly outcome: CallOutcome; readonly durationMs: number }> {
  const { claim, instance, number, timeoutMs } = claimed;
  const startedAt = performance.now();
  const outcome = await client.call({
    endpoint: instance.endpoint,
    input: request.input,
    idempotencyKey: toOpaqueKey(claim.key),
    attempt: number,
    timeoutMs,
    signal,
    onProgress: request.onProgress,
    traceparent,
  });
  const durationMs = performance.now() - startedAt;
  return { outcome: await checkOutput(validator, instance, outcome), durationMs };
}

async function checkOutput(
  validator: DeliverDependencies['validator'],
  { spec_digest }: InstanceSnapshot,
  outcome: CallOutcome,
): Promise<CallOutcome> {
  if (outcome.kind !== 'answered' || spec_digest === null) return outcome;
  const spec = await validator.spec(spec_digest);
  const unwrapped = unwrapAnswer(spec, outcome.body);
  if (!unwrapped.ok) return { kind: 'rejected', status: 200, message: unwrapped.error };
  if (unwrapped.output === undefined) {
    return { kind: 'malformed', message: 'the answer is {"ok": true} without "output"; both are needed' };
  }
  const result = await validator.validateOutput(spec_digest, unwrapped.output);
  if (result.ok) return { kind: 'answered', body: unwrapped.output as JsonObject };
  return outputInvalid(result.errors);
}

interface CallDependencies {
  readonly client: Pick<CapabilityClient, 'call'>;
  readonly fleet: FleetPoller;
  readonly attemptWriter: Pick<AttemptWriter, 'claim' | 'settle' | 'withdraw'>;
  readonly leases: Pick<LeaseRenewer<Claim>, 'hold'>;
  readonly leaseMs: number;
  /** Parts of the messages of refusals that pass, as the operator has listed them: with | between them. */
  readonly transientTexts: string;
  readonly breakers: Pick<Breakers, 'record' | 'reopen'>;
  readonly registry: InstanceReports;
  readonly validator: Pick<SchemaValidator, 'spec' | 'validateInput' | 'validateOutput'>;
  readonly speed: Pick<SpeedRecorder, 'recordCall'>;
  readonly ownMedia: Pick<OwnMedia, 'findForeign'>;
  readonly logger: Logger;
  /** Default: nobody is told. */
  readonly telemetry?: Telemetry;
}

type Claiming = CallDependencies & Pick<ClaimDependencies, 'queue' | 'probes'>;

function createPorts(dependencies: CallDependencies, claiming: Claiming): CallPorts<CallRequest, Claimed> {
  const { leases, telemetry = noTelemetry } = dependencies;
  const observer = createCallObserver(telemetry);
  return {
    claim: (target, tried) => observer.claim(target, () => claimInstance(claiming, target, tried)),
    hold: ({ claim }, lost) => leases.hold(claim, lost),
    deliver: (request, claimed, signal) => {
      const traceparent = observer.begin(request, claimed);
      return deliverCall(dependencies, { request, claimed, traceparent }, signal);
    },
    settle: async (request, claimed, ending) => {
      observer.end(request, claimed, ending);
      const isAccepted = await settleCall(dependencies, { request, claimed }, ending);
      reportInstance(dependencies, claimed, ending.delivery);
      return isAccepted;
    },
    transientTexts: readTransientTexts(dependencies.transientTexts),
    nowMs: () => performance.now(),
    random: Math.random,
  };
}

export function createCallRouter(dependencies: CallDependencies): CallRouter {
  const claiming = {
    ...dependencies,
    queue: createWaitQueue(),
    probes: createHalfOpenProbes(dependencies),
  };
  const ports = createPorts(dependencies, claiming);
  const prefetch = createClaimPrefetch({
    ...dependencies,
    claim: (like) => prefetchClaim(claiming, like),
    giveBack: (claimed) => giveBack(dependencies, claimed),
  });
  const callCapability = async (request: CallRequest): Promise<CallEnd> => {
    const refused = await refuseForeignMedia(dependencies, request);
    if (refused !== null) return refused;
    const stream = prefetch.enter(request);
    if (stream === null) return driveCall(ports, request);
    const claim: typeof ports.claim = async (target, tried) =>
      (tried.size === 0 ? await stream.take() : null) ?? ports.claim(target, tried);
    try {
      return await driveCall({ ...ports, claim }, request);
    } finally {
      stream.leave();
    }
  };
  return { callCapability, close: prefetch.close };
}

/** Wherever an input comes from, here it is as the instance would get it. */
async function refuseForeignMedia(
  { ownMedia }: Pick<CallDependencies, 'ownMedia'>,
  { projectId, input, jobId }: CallRequest,
): Promise<CallEnd | null> {
  const foreign = await ownMedia.findForeign(projectId, input, jobId);
  if (foreign === null) return null;
  const message = describeForeign(foreign);
  const details = { errors: [{ pointer: foreign.pointer, message }] };
  return {
    kind: 'failed',
    error: { code: 'media_unknown', message, details },
    decision: null,
    isRecorded: false,
  };
}
