/**
 * Judges the values that people bring: the input that a decision says is right, by the capability as it is now;
 * the output that it gives, by the capability, the job's result_schema or the step's own question. The step checks
 * an input again when it runs; a mistake is shown here, while the person who made it is still there. An input
 * without a decision is judged the same way, with inputs near it that the capability would take.
 */

import type { CheckRequest } from '../../contracts/capability.ts';
import type { Json } from '../../contracts/primitives.ts';
import type { InputVerdict, ReviewDecision, ReviewPayload } from '../../contracts/review.ts';
import { capabilityOf } from '../../core/definition/step-settings.ts';
import { isPlainObject } from '../../core/json/values.ts';
import { proposeCorrections } from '../../core/ladder/correction.ts';
import type { Db } from '../../db/connect.ts';
import { readEscalation } from '../../db/escalation/escalation.ts';
import type { ReviewRow } from '../../db/review/review.ts';
import { AppError } from '../../errors/app-error.ts';
import { createSchemaCompiler, type SchemaCompiler, SchemaRefused } from '../../schemas/schema-compiler.ts';
import type { SchemaError } from '../../schemas/schema-errors.ts';
import { type CapabilityLookup, type FleetPoller, requireCapability } from '../fleet/fleet-poller.ts';
import {
  type KnownSpec,
  listPresentSpecs,
  type SchemaValidator,
  type SpecTarget,
} from '../registry/specs.ts';
import type { RunContexts } from '../run-data/run-context.ts';

interface InputDependencies {
  readonly db: Db;
  readonly fleet: Pick<FleetPoller, 'of'>;
  readonly validator: Pick<SchemaValidator, 'validateInput' | 'validateOutput'>;
  readonly contexts: RunContexts;
}

/** Undefined for decisions that bring none. */
export function decidedInput(payload: ReviewPayload, decision: ReviewDecision): Json | undefined {
  if (decision.action === 'edit') return decision.input;
  return decision.action === 'approve' ? payload.proposals?.[decision.proposal ?? 0]?.input : undefined;
}

async function readTarget(contexts: RunContexts, runId: string, stepId: string): Promise<SpecTarget> {
  const context = await contexts.open(runId);
  const step = context.definition.steps.find(({ id }) => id === stepId);
  if (step === undefined) throw new AppError('not_found', `run ${runId} has no step ${stepId}`);
  return {
    capability: capabilityOf(step),
    versionRange: step.capability_version ?? null,
    tags: step.tags ?? [],
  };
}

type Side = 'input' | 'output';

/** @returns nothing when one of the specs allows the value, or none is known; else what the nearest one says */
async function findErrors(
  dependencies: InputDependencies,
  { run_id, step_id }: Pick<ReviewRow, 'run_id' | 'step_id'>,
  { side, value }: { readonly side: Side; readonly value: Json },
): Promise<readonly SchemaError[]> {
  if (run_id === null || step_id === null) return [];
  if (side === 'input' && !isPlainObject(value)) return [{ pointer: '', message: 'must be object' }];
  const { validator, contexts } = dependencies;
  const target = await readTarget(contexts, run_id, step_id);
  const validate = side === 'input' ? validator.validateInput : validator.validateOutput;
  let nearest: readonly SchemaError[] | null = null;
  const { specs } = await listPresentSpecs(dependencies, target);
  for (const { digest } of specs) {
    const result = await validate(digest, value);
    if (result.ok) return [];
    if (nearest === null || result.errors.length < nearest.length) nearest = result.errors;
  }
  return nearest ?? [];
}

/** What a job's own `result_schema` says against a result. */
async function findResultErrors(
  { db, compiler }: Pick<InputDependencies, 'db'> & { readonly compiler: SchemaCompiler },
  escalationId: string,
  result: Json,
): Promise<readonly SchemaError[]> {
  const schema = (await readEscalation(db, escalationId))?.result_schema ?? null;
  return schema === null ? [] : compiler.compile(schema)(result);
}

/** What a step's own question wants to be answered with. */
function findAnswerErrors(
  compiler: SchemaCompiler,
  { payload }: Pick<ReviewRow, 'payload'>,
  answer: Json,
): readonly SchemaError[] {
  if (payload.schema === undefined) return [];
  try {
    return compiler.compile(payload.schema)(answer);
  } catch (error) {
    if (!(error instanceof SchemaRefused)) throw error;
    return [{ pointer: '', message: `cannot be checked: the schema of the review has ${error.message}` }];
  }
}

function refuse(side: Side, schema: string, errors: readonly SchemaError[]): AppError {
  const findings = errors.map(({ pointer, message }) => `${pointer || '/'} ${message}`).join('; ');
  const message = `the ${side} does not match ${schema}: ${findings}`;
  const items = errors.map((error) => ({
    pointer: `/${side}${error.pointer}`,
    code: 'schema_mismatch',
    message: error.message,
  }));
  return new AppError(side === 'input' ? 'input_invalid' : 'request_invalid', message, { errors: items });
}

export type CheckDecision = (review: ReviewRow, decision: ReviewDecision) => Promise<void>;

/** @throws AppError `input_invalid`, and `request_invalid` for an output, with pointers */
export function createCheckDecision(dependencies: InputDependencies): CheckDecision {
  const compiler = createSchemaCompiler();
  return async (review, decision) => {
    const side: Side = decision.action === 'output' ? 'output' : 'input';
    const value = side === 'output' ? decision.output : decidedInput(review.payload, decision);
    if (value === undefined) return;
    const { run_id, escalation_id, kind } = review;
    if (kind === 'step') {
      const errors = findAnswerErrors(compiler, review, value);
      if (errors.length > 0) throw refuse(side, 'the schema of the review', errors);
      return;
    }
    const isJob = side === 'output' && run_id === null && escalation_id !== null;
    const errors = isJob
      ? await findResultErrors({ ...dependencies, compiler }, escalation_id, value)
      : await findErrors(dependencies, review, { side, value });
    const schema = isJob ? 'result_schema' : `the ${side} schema of the capability`;
    if (errors.length > 0) throw refuse(side, schema, errors);
  };
}

interface CheckDependencies extends CapabilityLookup {
  readonly validator: Pick<SchemaValidator, 'validateInput' | 'spec'>;
}

interface Nearest {
  readonly spec: KnownSpec;
  readonly errors: readonly SchemaError[];
}

/** The spec that takes it, or of those that do not the one with the fewest objections. Null: none is known. */
async function findNearest(
  { validator }: CheckDependencies,
  specs: readonly KnownSpec[],
  input: Json,
): Promise<Nearest | null> {
  let nearest: Nearest | null = null;
  for (const spec of specs) {
    const result = await validator.validateInput(spec.digest, input);
    if (result.ok) return { spec, errors: [] };
    if (nearest === null || result.errors.length < nearest.errors.length)
      nearest = { spec, errors: result.errors };
  }
  return nearest;
}

/**
 * Whether a capability would take an input, and which inputs near it would be taken: by the same validator and the same
 * repair as those of a step that was refused.
 */
export function createInputChecks(dependencies: CheckDependencies) {
  const compiler = createSchemaCompiler();
  return {
    /** @throws AppError `not_found` for a name that nobody ever registered */
    checkInput: async (
      capability: string,
      {
        input,
        version = null,
        tags,
      }: Omit<CheckRequest, 'version'> & { version?: string | null | undefined },
    ): Promise<InputVerdict> => {
      await requireCapability(dependencies, capability, '/name');
      if (!isPlainObject(input))
        return { valid: false, errors: [{ pointer: '', message: 'must be object' }], proposals: [] };
      const { specs } = await listPresentSpecs(dependencies, { capability, versionRange: version, tags });
      const nearest = await findNearest(dependencies, specs, input);
      if (nearest === null || nearest.errors.length === 0) return { valid: true, errors: [], proposals: [] };
      const { input: schema } = await dependencies.validator.spec(nearest.spec.digest);
      const spec = { schema, find: compiler.compile(schema).find };
      const task = {
        capability,
        repair: 'propose',
        spec,
        original: input,
        current: input,
        failed: [],
      } as const;
      const errors = nearest.errors.map(({ pointer, message }) => ({ pointer, message }));
      return { valid: false, errors, proposals: proposeCorrections(task) };
    },
  };
}

export type InputChecks = ReturnType<typeof createInputChecks>;
