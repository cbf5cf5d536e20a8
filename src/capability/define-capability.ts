/**
 * `defineCapability` turns what an author declares into a plain value that holds everything an instance needs.
 * It is plain so that a bootstrap can run a capability that was defined with another copy of this package.
 */
import { z } from 'zod';
import { CapabilitySpec, CostModel, type Registration } from '../contracts/capability.ts';
import { type JsonObject, Tags } from '../contracts/primitives.ts';
import type { Prerequisite } from './lifecycle/prerequisites.ts';
import type { CallMedia } from './media/call-media.ts';
import { type Checked, compileSchema, type InputOf, type OutputOf, type Schema } from './schema.ts';

/** Where a call says what it does. A line is cut at 2,000 characters. */
export interface CallLogger {
  /** A line in the instance's own log. */
  (line: string): void;
  // Lines in the log of the run; in the instance's own where the caller takes none.
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** What `exec` gets beside its input. */
export interface ExecContext {
  /** Aborts when the caller's connection closes or the instance is forced to stop. */
  readonly signal: AbortSignal;
  readonly media: CallMedia;
  /** When the caller gives up, if it said so (`X-Deadline`). */
  readonly deadline?: Date;
  /** The same for every delivery of one piece of work (`Idempotency-Key`). */
  readonly idempotencyKey?: string;
  /** Where the call stands in a trace, to be sent with what the work asks of others (`traceparent`). */
  readonly traceparent?: string;
  /** Where prerequisites were installed. */
  readonly cacheDir: string;
  readonly log: CallLogger;
  /** Says how far the call has come, 0 to 1, to whoever wants to know; call it as often as you like. */
  progress(fraction: number, message?: string): void;
}

export interface CapabilityDefinition<I extends Schema = Schema, O extends Schema = Schema> {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly input: I;
  readonly output: O;
  readonly cost_model: CostModel;
  readonly tags: readonly string[];
  /** Calls worked on at once, default 1; more of them wait inside the instance. */
  readonly max_concurrency?: number;
  /** reported: a success costs what `cost_usd` of the output says, at most the price; default computed. */
  readonly settle?: Registration['settle'];
  /** Equal inputs, with files of equal bytes, have results that are as good as equal: steps may keep them. Default false. */
  readonly deterministic?: boolean;
  readonly prerequisites?: readonly Prerequisite[];
  /** @throws anything: the caller gets 422 with the message; a `CallFailure` says another status */
  exec(input: InputOf<I>, context: ExecContext): Promise<OutputOf<O>> | OutputOf<O>;
}

export interface Capability {
  /** Answer of `GET /spec`. */
  readonly spec: CapabilitySpec;
  readonly cost_model: CostModel;
  readonly tags: readonly string[];
  readonly max_concurrency: number;
  /** Absent in what an older copy of this package defined: computed. */
  readonly settle?: Registration['settle'];
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
});

/** @throws Error that names every wrong field of the definition */
export function defineCapability<I extends Schema, O extends Schema>(
  definition: CapabilityDefinition<I, O>,
): Capability {
  const { name, cost_model, tags, max_concurrency = 1, settle = 'computed', prerequisites = [] } = definition;
  const input = compileSchema(definition.input, 'input');
  const output = compileSchema(definition.output, 'output');
  const declared = Declared.safeParse({
    spec: describe(definition, input.json, output.json),
    cost_model,
    tags,
    max_concurrency,
  });
  if (!declared.success) throw new Error(`capability ${name}: ${z.prettifyError(declared.error)}`);
  return {
    ...declared.data,
    settle,
    prerequisites,
    checkInput: input.check,
    checkOutput: output.check,
    // The value comes from checkInput, which is what ties it to I.
    exec: async (value, context) => definition.exec(value as InputOf<I>, context),
  };
}

/** Answer of `GET /spec`. */
function describe(definition: CapabilityDefinition, input: JsonObject, output: JsonObject): CapabilitySpec {
  const { name, version, description, cost_model, deterministic = false } = definition;
  const { type, rate_usd } = cost_model;
  return {
    name,
    version,
    description,
    input,
    output,
    cost_model: { type, rate_usd },
    ...(deterministic ? { deterministic } : {}),
  };
}

/** True for what `defineCapability` returns, from this or another copy of the package. */
export function isCapability(value: unknown): value is Capability {
  return (
    typeof value === 'object' &&
    value !== null &&
    ['spec', 'cost_model', 'tags', 'max_concurrency', 'prerequisites'].every((field) => field in value) &&
    ['exec', 'checkInput', 'checkOutput'].every((method) => typeof Reflect.get(value, method) === 'function')
  );
}
