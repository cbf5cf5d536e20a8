/**
 * `defineCapability` turns what an author declares into a plain value that holds everything an instance needs.
 * It is plain so that a bootstrap can run a capability that was defined with another copy of this package.
 */

import type { PreviousFault } from '@capstan/core/call/wrong-answer';
import {
  CapabilitySpec,
  CostModel,
  findWarmUpFault,
  Registration,
  SharedWith,
  WarmUp,
} from '@capstan/core/contracts/capability';
import { type Json, type JsonObject, Tags } from '@capstan/core/contracts/primitives';
import { findCostFaults } from '@capstan/core/money/cost-expressions';
import { findAffinityFault } from '@capstan/core/residency/affinity-key';
import { z } from 'zod';
import type { Prerequisite } from './lifecycle/prerequisites.ts';
import type { CallMedia } from './media/call-media.ts';
import { type Checked, compileSchema, type InputOf, type OutputOf, type Schema } from './schema.ts';

/**
 * The log of a call. `log('…')` writes to the instance's own log. `log.info('…')` and the other methods write to the
 * log of the run, where messages are cut at 2,000 characters. If the caller accepts no log messages, they write to the
 * instance's own log.
 */
export interface CallLogger {
  /** Writes a line to the instance's own log. */
  (line: string): void;
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** The second argument of `exec`: cancellation, files, logging and progress of one call. */
export interface ExecContext {
  /**
   * Aborts when the caller closes the connection or the instance is forced to stop. Pass it to `fetch`, `spawn` and
   * timers.
   */
  readonly signal: AbortSignal;
  /** Downloads and uploads the files of this call. */
  readonly media: CallMedia;
  /** The time at which the caller gives up (`X-Deadline`); absent if the caller sent none. */
  readonly deadline?: Date;
  /**
   * Identical in every attempt of the same piece of work (`Idempotency-Key`), until a wrong answer is asked for again.
   * Use it to deduplicate side effects.
   */
  readonly idempotencyKey?: string;
  /**
   * Why the answer to this call was wrong before (`X-Previous-Fault`), when it is asked for again. Present it to the
   * program or the model that answers. Absent if no answer was wrong.
   */
  readonly previousFault?: PreviousFault;
  /** The address for an answer that comes later (`X-Callback-Url`); absent if the caller needs it in place. */
  readonly callbackUrl?: string;
  /** W3C trace context of the call (`traceparent`). Forward it with requests to other services. */
  readonly traceparent?: string;
  /** What tracing systems add to it (`tracestate`). Forward it too. */
  readonly tracestate?: string;
  /** The folder into which prerequisites were installed. */
  readonly cacheDir: string;
  /** `log.info('…')` writes to the log of the run, `log('…')` to the instance's own log. */
  readonly log: CallLogger;
  /**
   * Reports progress to the caller. You may call it often: a report within 250 ms of the last one is dropped, unless
   * `fraction` is 1.
   * @param fraction 0 to 1; values outside are clamped
   * @param message at most 200 characters
   */
  progress(fraction: number, message?: string): void;
  /**
   * Passes on a part of the result as soon as it is made, such as a piece of a text, to a caller that asked for a
   * stream. `exec` still returns the whole result. A text of any length is allowed; other values have at most 16 kB of
   * JSON.
   * @throws Error for a larger value, since the caller would miss it
   */
  delta(part: Json): void;
}

/** A capability as its author declares it: the argument of `defineCapability`. */
export interface CapabilityDefinition<I extends Schema = Schema, O extends Schema = Schema> {
  /** Letters, digits, `_`, `-` and `.`, at most 128 characters. Steps refer to the capability by this name. */
  readonly name: string;
  /** 1 to 128 characters, such as `1.2.0`. All instances of one version must have the same schemas. */
  readonly version: string;
  /** One or two sentences for people who look for a capability. */
  readonly description: string;
  /**
   * Zod or JSON Schema (draft 2020-12) of the input. An input that does not match is answered 422; `exec` is not
   * called.
   */
  readonly input: I;
  /** Zod or JSON Schema of the output. An output that does not match makes the call fail with 422. */
  readonly output: O;
  /**
   * The price in USD per unit, such as `{ type: 'per_call', rate_usd: 0.01 }`; `{ type: 'free', rate_usd: 0 }` costs
   * nothing.
   */
  readonly cost_model: CostModel;
  /** Tags that calls may require of an instance, such as `local` or `gpu`. */
  readonly tags: readonly string[];
  /** Calls that run in parallel, 1 to 10,000; default 1. Further calls wait inside the instance. */
  readonly max_concurrency?: number;
  /**
   * How a successful call is charged. `computed` (default): by the cost model. `reported`: the output's `cost_usd`, at
   * most the reserved price.
   */
  readonly settle?: Registration['settle'];
  /**
   * An input that the router sends once before other calls, after each start: the instance loads its model then.
   * Only with a rate of 0. `timeout_s` is 60 by default.
   */
  readonly warm_up?: z.input<typeof WarmUp>;
  /** The other projects that the instance serves: `all`, or their ids. Default: those it was shared with before. */
  readonly shared_with?: SharedWith;
  /** True: equal inputs, with files of equal bytes, give equivalent results, so steps may cache them. Default false. */
  readonly deterministic?: boolean;
  /**
   * A text with expressions over `input`, such as `{{ input.model }}`: the key of what a call needs loaded. Calls with
   * the same key go to an instance that has it loaded, if that is sooner. Default: nothing is loaded for a call.
   */
  readonly affinity?: string;
  /** How many keys the instance holds loaded at once, at most 64. Default: as many as it reports, else 1. */
  readonly max_resident?: number;
  /** The keys that it has loaded now; reported with each answer, heartbeat and `/health`. Default: the router infers them. */
  readonly resident?: () => readonly string[];
  /** The protocols of models that it speaks itself, such as `openai.chat`. Default: none. */
  readonly protocols?: readonly string[];
  /** A closed connection ends the work and its cost within a second. Default: it does not. */
  readonly stops?: boolean;
  /** Calls may be answered later, with `later` and `sendResult`. Default: they are answered in place. */
  readonly async?: { readonly slot: 'held' | 'freed' };
  /** Programs and models that the instance needs; checked, and installed if possible, before it listens. */
  readonly prerequisites?: readonly Prerequisite[];
  /**
   * Performs one call.
   * @param input the parsed input
   * @returns the output, which is checked against the output schema
   * @throws CallFailure to choose the status of the answer; any other error is answered 422 with its message
   */
  exec(input: InputOf<I>, context: ExecContext): Promise<OutputOf<O>> | OutputOf<O>;
}

/** A checked definition that can be served: the result of `defineCapability`. */
export interface Capability {
  /** Answer of `GET /spec`. */
  readonly spec: CapabilitySpec;
  readonly cost_model: CostModel;
  readonly tags: readonly string[];
  readonly max_concurrency: number;
  /** Absent in definitions by an older copy of this package: computed. */
  readonly settle?: Registration['settle'];
  readonly warm_up?: Registration['warm_up'];
  readonly shared_with?: Registration['shared_with'];
  readonly max_resident?: Registration['max_resident'];
  /** The keys that it has loaded now. */
  resident?(): readonly string[];
  readonly prerequisites: readonly Prerequisite[];
  checkInput(value: unknown): Promise<Checked>;
  checkOutput(value: unknown): Promise<Checked>;
  exec(input: unknown, context: ExecContext): Promise<unknown>;
}

const Declared = z.object({
  spec: CapabilitySpec,
  cost_model: CostModel,
  tags: Tags,
  max_concurrency: z.number().int().min(1).max(10_000),
  warm_up: WarmUp.optional(),
  shared_with: SharedWith.optional(),
  max_resident: Registration.shape.max_resident,
});

/**
 * Checks a definition and turns it into a capability that can be served.
 *
 * @example
 * export const capability = defineCapability({
 *   name: 'word-count',
 *   version: '1.0.0',
 *   description: 'Counts the words of a text.',
 *   input: z.object({ text: z.string() }),
 *   output: z.object({ words: z.number().int() }),
 *   cost_model: { type: 'free', rate_usd: 0 },
 *   tags: ['local'],
 *   exec: ({ text }) => ({ words: text.split(/\s+/).filter(Boolean).length }),
 * });
 *
 * @throws Error that names every invalid field of the definition
 */
export function defineCapability<I extends Schema, O extends Schema>(
  definition: CapabilityDefinition<I, O>,
): Capability {
  const {
    name,
    cost_model,
    tags,
    max_concurrency = 1,
    settle = 'computed',
    prerequisites = [],
    warm_up,
    shared_with,
    max_resident,
    resident,
  } = definition;
  const input = compileSchema(definition.input, 'input');
  const output = compileSchema(definition.output, 'output');
  const declared = Declared.safeParse({
    spec: describe(definition, input.json, output.json),
    cost_model,
    tags,
    max_concurrency,
    warm_up,
    shared_with,
    max_resident,
  });
  if (!declared.success) throw new Error(`capability ${name}: ${z.prettifyError(declared.error)}`);
  requireFacts({ ...definition, settle });
  return {
    ...declared.data,
    ...(resident === undefined ? {} : { resident }),
    settle,
    prerequisites,
    checkInput: input.check,
    checkOutput: output.check,
    // `checkInput` has validated the value against I.
    exec: async (value, context) => definition.exec(value as InputOf<I>, context),
  };
}

/** @throws Error that names the first text that is no expression over the input, or a warm-up that is not free */
function requireFacts({
  name,
  cost_model,
  settle,
  affinity,
  warm_up,
}: Pick<CapabilityDefinition, 'name' | 'cost_model' | 'affinity' | 'warm_up'> &
  Pick<Registration, 'settle'>): void {
  const [fault] = findCostFaults({ cost_model, settle });
  if (fault !== undefined) throw new Error(`capability ${name}: cost_model.${fault.field} ${fault.message}`);
  const message = affinity === undefined ? null : findAffinityFault(affinity);
  if (message !== null) throw new Error(`capability ${name}: affinity: ${message}`);
  const unpaid = findWarmUpFault({ warm_up, cost_model });
  if (unpaid !== null) throw new Error(`capability ${name}: warm_up: ${unpaid}`);
}

/** Answer of `GET /spec`. */
function describe(definition: CapabilityDefinition, input: JsonObject, output: JsonObject): CapabilitySpec {
  const {
    name,
    version,
    description,
    cost_model,
    deterministic = false,
    protocols,
    stops = false,
    affinity,
  } = definition;
  const { notes: _, ...price } = cost_model;
  return {
    name,
    version,
    description,
    input,
    output,
    cost_model: price,
    ...(deterministic ? { deterministic } : {}),
    ...(protocols === undefined ? {} : { protocols: [...protocols] }),
    ...(stops ? { stops } : {}),
    ...(affinity === undefined ? {} : { affinity }),
    ...(definition.async === undefined ? {} : { async: definition.async }),
  };
}

/** True for results of `defineCapability`, of this or another copy of the package. */
export function isCapability(value: unknown): value is Capability {
  return (
    typeof value === 'object' &&
    value !== null &&
    ['spec', 'cost_model', 'tags', 'max_concurrency', 'prerequisites'].every((field) => field in value) &&
    ['exec', 'checkInput', 'checkOutput'].every((method) => typeof Reflect.get(value, method) === 'function')
  );
}
