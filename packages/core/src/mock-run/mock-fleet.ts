/**
 * The mocked instances of a local run: when each is registered, its spec, and its load.
 *
 * Also finds a mocked capability's answer to a call: the first reply that matches and is not used up.
 */

import type { FleetNow } from '../call/claim-search.ts';
import { type CancelSignal, CancelSource } from '../cancellation.ts';
import type { CostModel } from '../contracts/capability.ts';
import type { RegisteredHost } from '../contracts/host.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { parseDuration } from '../duration.ts';
import { evaluateCondition, readCondition } from '../expression/condition.ts';
import { evaluateTemplate } from '../expression/evaluate.ts';
import { inputDialect } from '../expression/filters.ts';
import { ExpressionError, type ExpressionSyntaxError } from '../expression/language.ts';
import { type CompiledTemplate, readTemplate } from '../expression/template.ts';
import { type SharedHost, SharedHosts } from '../hosts/shared-hosts.ts';
import type { SchemaFinding } from '../repair/candidate.ts';
import { isDeclaring } from '../routing/call-bound.ts';
import { priorDuration } from '../routing/estimate.ts';
import { MemoryLines } from '../routing/memory-lines.ts';
import type { InstanceSnapshot } from '../routing/types.ts';
import type { FormatUse } from '../schemas/formats.ts';
import { createSchemaCompiler, type SchemaCompiler } from '../schemas/schema-compiler.ts';
import {
  type MockCapability,
  MockFault,
  type MockInstance,
  type MockReply,
  type Mocks,
  showBriefly,
} from './mocks.ts';
import type { VirtualTime } from './virtual-time.ts';

type FindFaults = (value: Json) => readonly SchemaFinding[];

interface MockedCapability {
  readonly answer: AnswerCall;
  readonly inputSchema: JsonObject;
  readonly findInputFaults: FindFaults;
  readonly findOutputFaults: FindFaults;
  readonly instances: readonly { readonly snapshot: InstanceSnapshot; readonly from: number }[];
}

export interface MockFleet extends FleetNow {
  /** @throws MockFault when the capability has no mock */
  require(capability: string): MockedCapability;
  /** When the next instance will be registered; null = never. */
  nextRegistration(capability: string): number | null;
  /** Holds a slot of the instance until `release`. */
  take(instanceId: string): void;
  release(instanceId: string): void;
  /** Resolves when a slot of one of its instances is free, after at most `ms`. */
  waitForRelease(capability: string, ms: number, stop: CancelSignal): Promise<void>;
  /** Units that wait for a free slot. */
  readonly lines: MemoryLines;
  /** Calls that were received so far, by capability. */
  readonly calls: Readonly<Record<string, number>>;
}

/** The schema of an instance that declares none. */
const anyInput: JsonObject = { type: 'object' };

const anythingGoes: FindFaults = () => [];

export function createMockFleet(capabilities: Mocks['capabilities'] = {}, time: VirtualTime): MockFleet {
  let compiler: SchemaCompiler | null = null;
  const began = time.now();
  const fleets = new Map<string, MockedCapability>();
  const known = new Map<string, InstanceSnapshot>();
  const hosts = new SharedHosts();
  const hostOf = new Map<string, SharedHost>();
  const waiting = new Map<string, CancelSource[]>();
  const calls: Record<string, number> = {};

  /** A compiler is expensive, and most mocks have no schema. */
  const compile = (schema: JsonObject | undefined, formats: FormatUse): FindFaults => {
    if (schema === undefined) return anythingGoes;
    compiler ??= createSchemaCompiler();
    return compiler.compile(schema, formats).find;
  };

  for (const [name, mock] of Object.entries(capabilities)) {
    const instances = (mock.instances ?? [{}]).map((own, index) => ({
      snapshot: toSnapshot(name, index + 1, { ...mock, ...own }),
      host: own.host ?? mock.host,
      from: began + parseDuration(own.registered_after ?? mock.registered_after ?? '0s'),
    }));
    const reply = createMockCapability(name, mock);
    fleets.set(name, {
      answer: (call) => {
        const given = reply(call);
        if (given.kind !== 'refused') calls[name] = (calls[name] ?? 0) + 1;
        return given;
      },
      inputSchema: mock.input ?? anyInput,
      findInputFaults: compile(mock.input, 'asserted'),
      findOutputFaults: compile(mock.output, 'noted'),
      instances,
    });
    for (const { snapshot, host } of instances) {
      known.set(snapshot.instance_id, snapshot);
      if (host !== undefined) hostOf.set(snapshot.instance_id, placeOn(hosts, snapshot, host));
    }
    calls[name] = 0;
  }

  const fleet = (name: string): MockedCapability => {
    const mocked = fleets.get(name);
    if (mocked !== undefined) return mocked;
    const names = [...fleets.keys()].join(', ');
    throw new MockFault(`the capability ${name} has no mock; mocked are ${names === '' ? 'none' : names}`);
  };

  hosts.shareAll();

  /** The number of open calls is the only field of an instance that changes, with the room of its host. */
  const hold = (instanceId: string, by: 1 | -1): InstanceSnapshot => {
    const instance = known.get(instanceId) as InstanceSnapshot;
    (instance as { held: number }).held += by;
    hostOf.get(instanceId)?.share();
    return instance;
  };

  const instancesOf = (name: string): InstanceSnapshot[] =>
    fleet(name).instances.flatMap(({ snapshot, from }) => (from <= time.now() ? [snapshot] : []));
  const lines = new MemoryLines(instancesOf, time.now);

  return {
    calls,
    lines,
    require: fleet,
    of: (name) => {
      const instances = instancesOf(name);
      return { instances, priorMs: priorDuration(instances), declaring: instances.filter(isDeclaring) };
    },
    nowMs: time.now,
    nextRegistration: (name) => {
      const later = fleet(name).instances.flatMap(({ from }) => (from > time.now() ? [from] : []));
      return later.length === 0 ? null : Math.min(...later);
    },
    take: (instanceId) => void hold(instanceId, 1),
    release: (instanceId) => {
      const { name } = hold(instanceId, -1);
      const names = hostOf.get(instanceId)?.names() ?? new Set([name]);
      for (const one of names) waiting.get(one)?.shift()?.abort('released');
      lines.serve(names);
    },
    waitForRelease: async (name, ms, stop) => {
      const line = waiting.get(name) ?? [];
      waiting.set(name, line);
      const turn = new CancelSource();
      line.push(turn);
      const endTurn = (): void => turn.abort('stopped');
      stop.addEventListener('abort', endTurn);
      await time.sleep(ms, turn);
      stop.removeEventListener('abort', endTurn);
      if (line.includes(turn)) line.splice(line.indexOf(turn), 1);
    },
  };
}

/** Mocks have one project, and their instances do not change. */
function placeOn(
  hosts: SharedHosts,
  snapshot: InstanceSnapshot,
  { name, slots }: RegisteredHost,
): SharedHost {
  const place = { owner_project: '', host: name, slots_of_host: slots };
  return hosts.place(snapshot, place, null) as SharedHost;
}

/** A registration of such a price needs `settle: reported`. */
function isPricedByInput({ type, worst_case }: CostModel): boolean {
  return type === 'per_call' && worst_case !== undefined;
}

function toSnapshot(name: string, position: number, mock: MockInstance & MockCapability): InstanceSnapshot {
  const { tags = ['local'] } = mock;
  const cost_model: CostModel = mock.cost_model ?? { type: 'free', rate_usd: 0 };
  return {
    instance_id: `${name}#${position}`,
    name,
    version: mock.version ?? '1.0.0',
    endpoint: `mock://${name}/${position}`,
    cost_type: cost_model.type,
    rate_usd: cost_model.rate_usd,
    tags,
    max_concurrency: mock.max_concurrency ?? 16,
    state: 'up',
    settle: isPricedByInput(cost_model) ? 'reported' : 'computed',
    worst_case: cost_model.worst_case ?? null,
    expected_cost: cost_model.expected ?? null,
    spec_digest: name,
    held: 0,
    reported_extra: 0,
    duration_ms: mock.duration === undefined ? null : parseDuration(mock.duration),
    deviation_ms: null,
    mean_cost_usd: null,
    success_count: mock.duration === undefined ? 0 : 2, // a declared duration counts as learnt
    failure_count: 0,
    breaker_until_ms: null,
    is_local: tags.includes('local'),
    host: mock.host?.name ?? null,
    takes: mock.takes ?? 1,
    host_calls: null,
    host_room: null,
  };
}

interface MockCall {
  readonly input: JsonObject;
  readonly step_id: string;
  /** Position of the instance, from 1. */
  readonly instance: number;
}

/** laterMs: from its 202 to its answer; null: it answers in place. */
export type MockAnswer = { readonly delayMs: number; readonly laterMs: number | null } & (
  | { readonly kind: 'output'; readonly output: Json }
  | {
      readonly kind: 'error';
      readonly status: number;
      readonly message: string;
      readonly retryAfterMs: number | null;
    }
  | { readonly kind: 'garbage' | 'lost' | 'refused' }
);

/** @throws MockFault when no reply matches */
type AnswerCall = (call: MockCall) => MockAnswer;

interface CompiledReply {
  readonly reply: MockReply;
  readonly when: CompiledTemplate | null;
  readonly output: CompiledTemplate | null;
  left: number;
}

/** @param pointer of the replies in their document */
export function compileReplies(
  replies: readonly MockReply[],
  pointer = '',
): { readonly compiled: CompiledReply[]; readonly errors: readonly ExpressionSyntaxError[] } {
  const errors: ExpressionSyntaxError[] = [];
  const compiled = replies.map((reply, index): CompiledReply => {
    const at = `${pointer}/${index}`;
    const when = reply.when === undefined ? null : readCondition(reply.when, `${at}/when`, inputDialect);
    const output =
      reply.output === undefined ? null : readTemplate(reply.output, `${at}/output`, inputDialect);
    errors.push(...(when?.errors ?? []), ...(output?.errors ?? []));
    return {
      reply,
      when: when?.condition ?? null,
      output: output?.template ?? null,
      left: reply.times ?? Number.POSITIVE_INFINITY,
    };
  });
  return { compiled, errors };
}

export function createMockCapability(name: string, { replies }: MockCapability): AnswerCall {
  const { compiled, errors } = compileReplies(replies ?? [{}]);
  if (errors[0] !== undefined) throw errors[0];
  return (call) => {
    const chosen = compiled.find((one) => one.left > 0 && isFor(one, call));
    if (chosen === undefined) {
      const seen = `step ${call.step_id} with the input ${showBriefly(call.input)}`;
      throw new MockFault(`no reply of the mock ${name} matches the call of ${seen}`);
    }
    chosen.left -= 1;
    return answer(name, chosen, call);
  };
}

function isFor({ reply, when }: CompiledReply, call: MockCall): boolean {
  if (reply.step !== undefined && reply.step !== call.step_id) return false;
  if (reply.instance !== undefined && reply.instance !== call.instance) return false;
  return when === null || holds(when, call.input);
}

/** A condition about a value that this input lacks is false. */
function holds(when: CompiledTemplate, input: JsonObject): boolean {
  try {
    return evaluateCondition(when, { input, match: {} });
  } catch (error) {
    if (error instanceof ExpressionError) return false;
    throw error;
  }
}

function answer(name: string, { reply, output }: CompiledReply, { input }: MockCall): MockAnswer {
  const delayMs = reply.delay === undefined ? 0 : parseDuration(reply.delay);
  const laterMs = reply.later === undefined ? null : parseDuration(reply.later);
  const when = { delayMs, laterMs };
  if (reply.error !== undefined) {
    const { retry_after, ...error } = reply.error;
    const retryAfterMs = retry_after === undefined ? null : parseDuration(retry_after);
    return { kind: 'error', ...when, ...error, retryAfterMs };
  }
  for (const kind of ['garbage', 'lost', 'refused'] as const)
    if (reply[kind] === true) return { kind, ...when };
  if (output === null) return { kind: 'output', ...when, output: input };
  try {
    return { kind: 'output', ...when, output: evaluateTemplate(output, { input, match: {} }) };
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    throw new MockFault(`the output of the mock ${name} cannot be made: ${error.message}`);
  }
}
