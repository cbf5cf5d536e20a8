/**
 * Validates the values that people enter: the input in a decision, by the capability's current spec; the output in a
 * decision, by the capability, the job's result_schema or the step's own question. The step checks an input again when
 * it runs; this check shows a mistake to the person who made it. An input without a decision is checked the same way,
 * and similar valid inputs are suggested.
 */

import type { CheckRequest } from '@capstan/core/contracts/capability';
import type { Json } from '@capstan/core/contracts/primitives';
import type { InputVerdict, ReviewDecision } from '@capstan/core/contracts/review';
import { AppError } from '@capstan/core/errors/app-error';
import { isPlainObject, summarizeFindings } from '@capstan/core/json/values';
import { proposeCorrections, withAnswers } from '@capstan/core/ladder/correction';
import { decidedInput } from '@capstan/core/review-actions';
import { SchemaRefused } from '@capstan/core/schemas/schema-compiler';
import type { SchemaError } from '@capstan/core/schemas/schema-errors';
import type { Ctx } from '../../context.ts';
import { readEscalation } from '../../db/escalation/escalation.ts';
import type { NameInProject } from '../../db/instance/capability-name.ts';
import type { ReviewRow } from '../../db/review/review.ts';
import { requireCapability } from '../../parts/fleet/fleet-poller.ts';
import { type KnownSpec, listPresentSpecs, specTargetOf } from '../../parts/fleet/specs.ts';

export type InputCtx = Pick<Ctx, 'db' | 'contexts'> & {
  readonly fleet: Pick<Ctx['fleet'], 'seenBy'>;
  readonly validator: Ctx['validator'];
};

async function findStepSpecs(ctx: InputCtx, runId: string, stepId: string): Promise<readonly KnownSpec[]> {
  const context = await ctx.contexts.open(runId);
  const step = context.definition.steps.find(({ id }) => id === stepId);
  if (step === undefined) throw new AppError('not_found', `run ${runId} has no step ${stepId}`);
  return (await listPresentSpecs(ctx, context.project_id, specTargetOf(step))).specs;
}

type Side = 'input' | 'output';

/**
 * @returns nothing when one of the specs allows the value, or none is known; otherwise the faults by the nearest spec
 */
async function findErrors(
  ctx: InputCtx,
  { run_id, step_id }: Pick<ReviewRow, 'run_id' | 'step_id'>,
  { side, value }: { readonly side: Side; readonly value: Json },
): Promise<readonly SchemaError[]> {
  if (run_id === null || step_id === null) return [];
  if (side === 'input' && !isPlainObject(value)) return [{ pointer: '', message: 'must be object' }];
  const { validator } = ctx;
  let nearest: readonly SchemaError[] | null = null;
  for (const { digest } of await findStepSpecs(ctx, run_id, step_id)) {
    const errors = await (await validator.of(digest))[side](value);
    if (nearest === null || errors.length < nearest.length) nearest = errors;
    if (nearest.length === 0) break;
  }
  return nearest ?? [];
}

/** Checks a result by its job's own `result_schema`. */
async function findResultErrors(
  { db, validator }: InputCtx,
  escalationId: string,
  result: Json,
): Promise<readonly SchemaError[]> {
  const schema = (await readEscalation(db, escalationId))?.result_schema ?? null;
  return schema === null ? [] : validator.ofSchema(schema)(result);
}

/** Checks an answer by the schema of the step's question. */
async function findAnswerErrors(
  { validator }: InputCtx,
  { payload }: Pick<ReviewRow, 'payload'>,
  answer: Json,
): Promise<readonly SchemaError[]> {
  if (payload.schema === undefined) return [];
  try {
    return await validator.ofSchema(payload.schema)(answer);
  } catch (error) {
    if (!(error instanceof SchemaRefused)) throw error;
    return [{ pointer: '', message: `cannot be checked: the schema of the review has ${error.message}` }];
  }
}

function refuse(side: Side, schema: string, errors: readonly SchemaError[]): AppError {
  const findings = summarizeFindings(errors);
  const message = `the ${side} does not match ${schema}: ${findings}`;
  const items = errors.map((error) => ({
    pointer: `/${side}${error.pointer}`,
    code: 'schema_mismatch',
    message: error.message,
  }));
  return new AppError(side === 'input' ? 'input_invalid' : 'request_invalid', message, { errors: items });
}

/** @throws AppError `input_invalid`, and `request_invalid` for an output, with pointers */
export async function checkDecision(
  ctx: InputCtx,
  review: ReviewRow,
  decision: ReviewDecision,
): Promise<void> {
  const side: Side = decision.action === 'output' ? 'output' : 'input';
  const value = side === 'output' ? decision.output : decidedInput(review.payload, decision);
  if (value === undefined) return;
  const { run_id, escalation_id, kind } = review;
  if (kind === 'step') {
    const errors = await findAnswerErrors(ctx, review, value);
    if (errors.length > 0) throw refuse(side, 'the schema of the review', errors);
    return;
  }
  const isJob = side === 'output' && run_id === null && escalation_id !== null;
  const errors = isJob
    ? await findResultErrors(ctx, escalation_id, value)
    : await findErrors(ctx, review, { side, value });
  const schema = isJob ? 'result_schema' : `the ${side} schema of the capability`;
  if (errors.length > 0) throw refuse(side, schema, errors);
}

interface Nearest {
  readonly spec: KnownSpec;
  readonly errors: readonly SchemaError[];
}

/** The spec that accepts it, otherwise the one with the fewest faults. Null: none is known. */
async function findNearest(
  { validator }: Pick<Ctx, 'validator'>,
  specs: readonly KnownSpec[],
  input: Json,
): Promise<Nearest | null> {
  let nearest: Nearest | null = null;
  for (const spec of specs) {
    const errors = await (await validator.of(spec.digest)).input(input);
    if (nearest === null || errors.length < nearest.errors.length) nearest = { spec, errors };
    if (nearest.errors.length === 0) break;
  }
  return nearest;
}

type CheckedInput = Omit<CheckRequest, 'version'> & { readonly version?: string | null | undefined };

/**
 * Checks whether a capability would accept an input, and finds similar inputs that it would accept: by the same
 * validator and the same repair as for a step that was refused.
 *
 * @throws AppError `not_found` for a name that was never registered
 */
export async function checkInput(
  ctx: Pick<Ctx, 'db' | 'fleet' | 'validator'>,
  { projectId, name: capability }: NameInProject,
  { input, version = null, tags }: CheckedInput,
): Promise<InputVerdict> {
  await requireCapability(ctx, { projectId, name: capability }, '/name');
  if (!isPlainObject(input))
    return { valid: false, errors: [{ pointer: '', message: 'must be object' }], proposals: [] };
  const { specs } = await listPresentSpecs(ctx, projectId, { capability, versionRange: version, tags });
  const nearest = await findNearest(ctx, specs, input);
  if (nearest === null || nearest.errors.length === 0) return { valid: true, errors: [], proposals: [] };
  const { spec: known, input: check } = await ctx.validator.of(nearest.spec.digest);
  const spec = { schema: known.input, find: check.find, repair: check.repair };
  const task = { capability, repair: 'propose', spec, original: input, current: input, failed: [] } as const;
  const errors = nearest.errors.map(({ pointer, message }) => ({ pointer, message }));
  return { valid: false, errors, proposals: await withAnswers(task, proposeCorrections) };
}
