/** Sends a claimed call and judges what came back. */
import type { CapabilityClient } from '../../clients/capability-http.ts';
import type { JsonObject } from '../../contracts/primitives.ts';
import { isExhausted, judgeOutcome, type Verdict } from '../../core/call/judge.ts';
import type { CallOutcome } from '../../core/call/outcome.ts';
import type { CancelSignal } from '../../core/cancellation.ts';
import { unwrapAnswer } from '../../core/routing/unwrap-answer.ts';
import type { SchemaValidator } from '../registry/schema-validator.ts';
import type { CallRequest } from './call-capability.ts';
import type { Claimed } from './claim-instance.ts';

export interface DeliverDependencies {
  readonly client: CapabilityClient;
  readonly validator: Pick<SchemaValidator, 'spec' | 'validateOutput'>;
}

/** One request to one instance, and what it means. */
export interface Delivery {
  readonly outcome: CallOutcome;
  readonly verdict: Verdict;
  readonly durationMs: number;
  /** Counted failures of the key, this one included. */
  readonly counted: number;
}

export async function deliverCall(
  dependencies: DeliverDependencies,
  request: CallRequest,
  claimed: Claimed,
  signal: CancelSignal,
): Promise<Delivery> {
  const facts = { countedBefore: claimed.counted, retryMax: request.retry.max };
  const { outcome, durationMs } = isExhausted(facts)
    ? { outcome: { kind: 'withheld' } as const, durationMs: 0 }
    : await callInstance(dependencies, request, claimed, signal);
  const verdict = judgeOutcome(outcome, facts);
  return { outcome, verdict, durationMs, counted: claimed.counted + (verdict.counted ? 1 : 0) };
}

/** The request itself, and the answer checked against the instance's own schema. */
async function callInstance(
  { client, validator }: DeliverDependencies,
  request: CallRequest,
  { claim, instance, number, timeoutMs }: Claimed,
  signal: CancelSignal,
): Promise<{ outcome: CallOutcome; durationMs: number }> {
  const startedAt = performance.now();
  const outcome = await client.call({
    endpoint: instance.endpoint,
    input: request.input,
    idempotencyKey: claim.key,
    attempt: number,
    timeoutMs,
    signal,
  });
  const durationMs = performance.now() - startedAt;
  return { outcome: await checkOutput(validator, instance, outcome), durationMs };
}

async function checkOutput(
  validator: DeliverDependencies['validator'],
  { name, version, spec_digest }: Claimed['instance'],
  outcome: CallOutcome,
): Promise<CallOutcome> {
  if (outcome.kind !== 'answered' || spec_digest === null) return outcome;
  const spec = await validator.spec(spec_digest);
  const unwrapped = unwrapAnswer(spec, outcome.body);
  if (!unwrapped.ok) return { kind: 'rejected', status: 200, message: unwrapped.error };
  if (unwrapped.output === undefined) {
    return { kind: 'malformed', message: 'the answer is {"ok": true} without "output"; both are needed' };
  }
  const result = await validator.validateOutput(name, version, spec_digest, unwrapped.output);
  if (result.ok) return { kind: 'answered', body: unwrapped.output as JsonObject };
  const findings = result.errors.map(({ pointer, message }) => `${pointer || '/'} ${message}`).join('; ');
  return { kind: 'output_invalid', message: `the answer does not match the output schema: ${findings}` };
}
