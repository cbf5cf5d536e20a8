/**
 * Tests an instance against the contract of a capability, in any language: three endpoints, their shapes, 422 for an
 * unusable input, readable lines in a streamed answer, and no crash. It sends a valid input only if its caller passes
 * one, so it starts no real work by itself.
 */

import { isLogLine, readLogLine } from '@capstan/core/call/log-lines';
import { isProgressLine, readProgress } from '@capstan/core/call/outcome';
import { CapabilitySpec, Health } from '@capstan/core/contracts/capability';
import { LogLevel } from '@capstan/core/contracts/event';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { withoutEndSlashes } from '@capstan/core/expression/language';
import { parseJson } from '@capstan/core/json/text';
import { isPlainObject } from '@capstan/core/json/values';
import { listNotEnforced } from '@capstan/core/schema-types/not-enforced';
import type { ValidateFunction } from 'ajv';
import { z } from 'zod';
import { compileAjv } from './schema.ts';

/** Requests to a capability under test. A probe never throws: a missing answer is a finding too. */

interface Reply {
  /** 0: no answer. */
  readonly status: number;
  /** Undefined: the body is not JSON. */
  readonly body: unknown;
  /** The answer in a few words. */
  readonly summary: string;
  /** The content type; empty when there is none. */
  readonly type: string;
  readonly text: string;
}

interface AskedRequest {
  readonly body?: string;
  readonly accept?: string;
  readonly timeoutMs?: number;
}

type Probe = (method: string, path: string, request?: string | AskedRequest) => Promise<Reply>;

const timeoutMs = 10_000;

function shorten(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > 120 ? `${line.slice(0, 120)}…` : line;
}

/** @param url base address of the instance */
function createProbe(url: string): Probe {
  const base = withoutEndSlashes(url);
  return async (method, path, request = {}) => {
    const {
      body,
      accept,
      timeoutMs: limitMs = timeoutMs,
    } = typeof request === 'string' ? { body: request } : request;
    const headers = {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(accept === undefined ? {} : { accept }),
    };
    const signal = AbortSignal.timeout(limitMs);
    const init: RequestInit = {
      method,
      redirect: 'manual',
      signal,
      headers,
      ...(body === undefined ? {} : { body }),
    };
    try {
      const response = await fetch(`${base}${path}`, init);
      const text = await response.text();
      const type = response.headers.get('content-type') ?? '';
      const { status } = response;
      return { status, body: parseJson(text), summary: `${status} ${shorten(text)}`, type, text };
    } catch (error) {
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
      const reason = cause instanceof Error ? cause.message || cause.name : String(cause);
      return { status: 0, body: undefined, summary: `no answer (${reason})`, type: '', text: '' };
    }
  };
}

export interface CheckResult {
  readonly name: string;
  readonly ok: boolean;
  /** One line: the observed value, and the expected one when it differs. */
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

function describeGaps(schema: JsonObject): readonly string[] {
  return listNotEnforced(schema).map(
    ({ pointer, reason }) => `the router does not enforce ${pointer}: ${shorten(reason)}`,
  );
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
    const detail = ['JSON Schema draft 2020-12', ...describeGaps(spec[field])].join('; ');
    return { result: { name, ok: true, detail }, validate };
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

function describeLine(line: string): string | null {
  const value = parseJson(line);
  if (isProgressLine(value) && readProgress(value) === null) return 'its progress is no number from 0 to 1';
  if (!isLogLine(value) || readLogLine(value) !== null) return null;
  return `its log needs a level (${LogLevel.options.join(', ')}) and a message`;
}

/** Errors in the lines before the last one, which holds the answer. */
function findLineFaults(lines: readonly string[]): readonly string[] {
  return lines.flatMap((line, at) => {
    const value = parseJson(line);
    const isTold = isProgressLine(value) || isLogLine(value);
    const fate = isPlainObject(value) ? 'it is skipped' : 'it is part of the answer';
    const fault = isTold ? describeLine(line) : `it is neither progress nor log, so ${fate}`;
    return fault === null ? [] : [`line ${at + 1}, ${shorten(line)}: ${fault}`];
  });
}

const LastLine = Refusal.extend({ status: z.number().int().min(400).max(599) });

/** @param isRefused the input is invalid, so the last line must hold an error */
function checkLines(name: string, { status, type, text, summary }: Reply, isRefused: boolean): CheckResult {
  if (!/^application\/x-ndjson\b/i.test(type)) {
    const ok = status === (isRefused ? 422 : 200);
    return { name, ok, detail: ok ? `answers as one document, ${status}` : `got ${summary}` };
  }
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const faults = findLineFaults(lines.slice(0, -1));
  const last = parseJson(lines.at(-1) ?? '');
  const isAnswer = isRefused ? LastLine.safeParse(last).success : isPlainAnswer(last);
  const wanted = isRefused ? '{ok: false, error, status}' : 'the answer';
  const ends = isAnswer ? [] : [`the last line is not ${wanted}: ${shorten(lines.at(-1) ?? '')}`];
  const all = [...faults, ...ends];
  const seen = `${lines.length} lines, the last one is the answer`;
  return { name, ok: all.length === 0, detail: all.length === 0 ? seen : all.slice(0, 3).join('; ') };
}

function isPlainAnswer(value: unknown): boolean {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject && Reflect.get(value, 'ok') !== false && !isProgressLine(value) && !isLogLine(value);
}

const inLines = 'application/json, application/x-ndjson;q=0.9';

async function checkInvalidInLines(probe: Probe, validate: ValidateFunction | null): Promise<CheckResult> {
  const name = 'POST /exec in lines refuses invalid input';
  if (validate === null) return { name, ok: false, detail: 'no input schema to break' };
  if (validate({})) return { name, ok: true, detail: 'skipped: the input schema accepts {}' };
  return checkLines(name, await probe('POST', '/exec', { body: '{}', accept: inLines }), true);
}

/** Time limit of a call with the author's input, which is real work. */
const workMs = 600_000;

async function checkWork(probe: Probe, input: unknown): Promise<readonly CheckResult[]> {
  if (input === undefined) return [];
  const request = { body: JSON.stringify(input), accept: inLines, timeoutMs: workMs };
  return [checkLines('POST /exec answers the given input', await probe('POST', '/exec', request), false)];
}

/** Expects a refusal in the 4xx range; the capability chooses which one. */
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
 * Tests an instance against the contract of a capability.
 * @param url base address of the instance
 * @param input input of one call; without it, no work is started
 * @returns one entry per check; a single entry when no server listens at `url`
 */
export async function checkCapability(url: string, input?: unknown): Promise<readonly CheckResult[]> {
  const probe = createProbe(url);
  const first = await probe('GET', '/health');
  const health = checkShape('GET /health', first, HealthyHealth);
  if (first.status === 0) return [{ ...health.result, detail: `${url}: ${first.summary}` }];
  const spec = checkShape('GET /spec', await probe('GET', '/spec'), CapabilitySpec);
  const compiled = compile('input', spec.value);
  return [
    health.result,
    spec.result,
    checkAgreement(health.value, spec.value),
    compiled.result,
    compile('output', spec.value).result,
    await checkInvalidInput(probe, compiled.validate),
    await checkInvalidInLines(probe, compiled.validate),
    ...(await checkWork(probe, input)),
    checkRefused('POST /exec refuses what is not JSON', await probe('POST', '/exec', '{"a":'), [400, 422]),
    checkRefused('GET /exec is refused', await probe('GET', '/exec'), [404, 405]),
    checkRefused('POST /health is refused', await probe('POST', '/health', '{}'), [404, 405]),
    checkRefused('an unknown path is 404', await probe('GET', '/capstan-conformance'), [404]),
    checkStillHealthy(health.value, await probe('GET', '/health')),
  ];
}
