/** Sends a claimed call once; its answer is checked against the instance's own schema. */
import type { CapabilityClient } from '../../clients/capability-http.ts';
import type { JsonObject } from '../../contracts/primitives.ts';
import { type CallOutcome, outputInvalid } from '../../core/call/outcome.ts';
import type { CancelSignal } from '../../core/cancellation.ts';
import type { InstanceSnapshot } from '../../core/routing/types.ts';
import { unwrapAnswer } from '../../core/routing/unwrap-answer.ts';
import type { SchemaValidator } from '../registry/schema-validator.ts';
import { toOpaqueKey } from './opaque-key.ts';
import type { CallRequest, Claimed } from './routed-call.ts';

export interface DeliverDependencies {
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
export async function deliverCall(
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
