/**
 * Proves that an instance keeps the contract of a capability, whatever language it is written in: three endpoints,
 * their shapes, 422 for what it cannot use, and no crash. It never sends an input that the spec allows, so no real
 * work is started.
 */
import type { ValidateFunction } from 'ajv';
import { z } from 'zod';
import { CapabilitySpec, Health } from '../contracts/capability.ts';
import { compileAjv } from './schema.ts';

/** Requests to a capability under test. A probe never throws: no answer is a finding like any other. */

interface Reply {
  /** 0 when there was no answer. */
  readonly status: number;
  /** Undefined when the body is not JSON. */
  readonly body: unknown;
  /** What came, in a few words. */
  readonly summary: string;
}

type Probe = (method: string, path: string, body?: string) => Promise<Reply>;

const timeoutMs = 10_000;

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function shorten(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > 120 ? `${line.slice(0, 120)}…` : line;
}

/** @param url base address of the instance */
function createProbe(url: string): Probe {
  const base = url.replace(/(?<!\/)\/+$/, '');
  return async (method, path, body) => {
    const headers = { 'content-type': 'application/json' };
    const signal = AbortSignal.timeout(timeoutMs);
    const init: RequestInit = {
      method,
      redirect: 'manual',
      signal,
      ...(body === undefined ? {} : { body, headers }),
    };
    try {
      const response = await fetch(`${base}${path}`, init);
      const text = await response.text();
      return { status: response.status, body: parse(text), summary: `${response.status} ${shorten(text)}` };
    } catch (error) {
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
      const reason = cause instanceof Error ? cause.message || cause.name : String(cause);
      return { status: 0, body: undefined, summary: `no answer (${reason})` };
    }
  };
}

export interface CheckResult {
  readonly name: string;
  readonly ok: boolean;
  /** One line: what was seen, and what was expected when that differs. */
  readonly detail: string;
}

function oneLine(error: z.ZodError): string {
  return error.issues.map((issue) => `${issue.path.join('.') || 'the answer'}: ${issue.message}`).join('; ');
}

function checkShape<Shape>(
  name: string,
  reply: Reply,
  schema: z.ZodType<Shape>,
): { readonly result: CheckResult; readonly value: Shape | null } {
  if (reply.status !== 200) {
    return { result: { name, ok: false, detail: `expected 200, got ${reply.summary}` }, value: null };
  }
  const parsed = schema.safeParse(reply.body);
  if (parsed.success) return { result: { name, ok: true, detail: 'shape as specified' }, value: parsed.data };
  return { result: { name, ok: false, detail: oneLine(parsed.error) }, value: null };
}

const HealthyHealth = Health.refine((health) => health.status === 'ok', {
  path: ['status'],
  error: 'expected ok',
});

const Refusal = z.object({ ok: z.literal(false), error: z.string().min(1) });

function checkAgreement(health: Health | null, spec: CapabilitySpec | null): CheckResult {
  const name = '/health and /spec agree';
  if (health === null || spec === null) return { name, ok: false, detail: 'one of them cannot be read' };
  const ofHealth = `${health.name} ${health.version}`;
  const ofSpec = `${spec.name} ${spec.version}`;
  const ok = ofHealth === ofSpec;
  return { name, ok, detail: ok ? ofSpec : `/health says ${ofHealth}, /spec says ${ofSpec}` };
}

function compile(
  field: 'input' | 'output',
  spec: CapabilitySpec | null,
): { readonly result: CheckResult; readonly validate: ValidateFunction | null } {
  const name = `${field} schema compiles`;
  if (spec === null)
    return { result: { name, ok: false, detail: 'no spec to read it from' }, validate: null };
  try {
    const validate = compileAjv(spec[field], field);
    return { result: { name, ok: true, detail: 'JSON Schema draft 2020-12' }, validate };
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    return { result: { name, ok: false, detail }, validate: null };
  }
}

async function checkInvalidInput(probe: Probe, validate: ValidateFunction | null): Promise<CheckResult> {
  const name = 'POST /exec refuses invalid input';
  if (validate === null) return { name, ok: false, detail: 'no input schema to break' };
  if (validate({})) return { name, ok: true, detail: 'skipped: the input schema accepts {}' };
  const reply = await probe('POST', '/exec', '{}');
  const ok = reply.status === 422 && Refusal.safeParse(reply.body).success;
  return { name, ok, detail: ok ? reply.summary : `expected 422 {ok: false, error}, got ${reply.summary}` };
}

/** A refusal in the 4xx range; which one is the capability's choice. */
function checkRefused(name: string, reply: Reply, allowed: readonly number[]): CheckResult {
  const ok = allowed.includes(reply.status);
  return {
    name,
    ok,
    detail: ok ? `${reply.status}` : `expected ${allowed.join(' or ')}, got ${reply.summary}`,
  };
}

function checkStillHealthy(before: Health | null, reply: Reply): CheckResult {
  const name = 'still healthy afterwards';
  const { result, value } = checkShape(name, reply, HealthyHealth);
  if (value === null || before === null || value.uptime_ms >= before.uptime_ms) return result;
  return { name, ok: false, detail: `uptime_ms fell to ${value.uptime_ms}: the process was restarted` };
}

/**
 * @param url base address of the instance
 * @returns one entry per check; a single one when nothing listens there
 */
export async function checkCapability(url: string): Promise<readonly CheckResult[]> {
  const probe = createProbe(url);
  const first = await probe('GET', '/health');
  const health = checkShape('GET /health', first, HealthyHealth);
  if (first.status === 0) return [{ ...health.result, detail: `${url}: ${first.summary}` }];
  const spec = checkShape('GET /spec', await probe('GET', '/spec'), CapabilitySpec);
  const input = compile('input', spec.value);
  return [
    health.result,
    spec.result,
    checkAgreement(health.value, spec.value),
    input.result,
    compile('output', spec.value).result,
    await checkInvalidInput(probe, input.validate),
    checkRefused('POST /exec refuses what is not JSON', await probe('POST', '/exec', '{"a":'), [400, 422]),
    checkRefused('GET /exec is refused', await probe('GET', '/exec'), [404, 405]),
    checkRefused('POST /health is refused', await probe('POST', '/health', '{}'), [404, 405]),
    checkRefused('an unknown path is 404', await probe('GET', '/capstan-conformance'), [404]),
    checkStillHealthy(health.value, await probe('GET', '/health')),
  ];
}
