/**
 * What the parts of a local run share; the world is shared with its sub-runs.
 *
 * What a local run may still spend: each call reserves the most that it can cost, and settles for what it did, in
 * its run and in those above it.
 *
 * What expressions see of the steps of a local run, and a step's input; the rules are those of stored results.
 */
import type { PipelineDefinition } from '../contracts/pipeline.ts';
import type { Failure, Json, JsonObject, Priority } from '../contracts/primitives.ts';
import type { CancelSource } from '../core/cancellation.ts';
import type { CompiledDefinition, CompiledStep } from '../core/definition/compile.ts';
import { evaluateCondition } from '../core/expression/condition.ts';
import { evaluateTemplate } from '../core/expression/evaluate.ts';
import type { ExpressionScope, StepScope } from '../core/expression/evaluation.ts';
import { ExpressionError } from '../core/expression/language.ts';
import { type CompiledTemplate, referencedSteps } from '../core/expression/template.ts';
import { fromNanoUsd, toNanoUsd } from '../core/money/nano-usd.ts';
import { hasRoomFor, type Shortage } from '../core/money/reservation.ts';
import { lowestCeiling } from '../core/routing/estimate.ts';
import type { StepVerdict } from '../core/run/machine.ts';
import { type Evaluated, refuseStep, toItems } from '../core/run/step-failures.ts';
import type { MockFleet } from './mock-fleet.ts';
import type { MockReviewer } from './mock-reviewer.ts';
import type { RunJournal, UnitName, UnitRecord } from './run-journal.ts';
import type { VirtualTime } from './virtual-time.ts';

/** How a run ended; `waiting`: nothing happens any more, and it has not ended. */
export type LocalOutcome = 'succeeded' | 'failed' | 'cancelled' | 'waiting' | 'refused';

export interface SubRun {
  readonly runId: string;
  /** Null while it is under way. */
  end(): Pick<EndedRun, 'outcome' | 'error' | 'output'> | null;
  /** What it has cost so far, with the runs below it. */
  spentNano(): bigint;
  cancel(): void;
}

export interface SubRunOrder {
  readonly definition: PipelineDefinition;
  readonly job: JsonObject;
  readonly depth: number;
  readonly priority: Priority;
  /** Null = only its own definition's. */
  readonly ceilingUsd: number | null;
  /** The budget of the run whose step started it; null = none did. */
  readonly above: RunBudget | null;
  /** Told when it has ended. */
  readonly onEnd: () => void;
}

export interface EndedRun {
  readonly outcome: LocalOutcome;
  readonly error: Failure | null;
  readonly output?: Json;
}

export interface MockWorld {
  readonly time: VirtualTime;
  readonly fleet: MockFleet;
  readonly seed: number;
  /** @returns undefined when there is no such pipeline */
  findPipeline(reference: string): PipelineDefinition | undefined;
  startSubRun(order: SubRunOrder): SubRun;
}

export interface LocalContext {
  readonly world: MockWorld;
  readonly definition: PipelineDefinition;
  readonly compiled: CompiledDefinition;
  readonly runId: string;
  readonly priority: Priority;
  /** 0 for the run itself. */
  readonly depth: number;
  readonly scope: RunScope;
  readonly journal: RunJournal;
  readonly budget: RunBudget;
  readonly reviewer: MockReviewer;
  /** Stops every step that is under way. */
  readonly stop: CancelSource;
  /** Stops the ladders among them. */
  readonly climbing: CancelSource;
  /** Whether somebody has cancelled the run. */
  isCancelled(): boolean;
  /** What the unit waits for may be there. */
  wake(unit: UnitName): void;
  cancelRun(): void;
}

export function stepOf({ definition, compiled }: LocalContext, id: string): CompiledStep {
  return compiled.steps[definition.steps.findIndex((step) => step.id === id)] as CompiledStep;
}

export interface RunBudget {
  /** @returns why not; null = it is reserved */
  reserve(nano: bigint): Shortage | null;
  settle(reserved: bigint, amount: bigint): void;
  /** @param ceilingUsd null = none */
  raise(ceilingUsd: number | null): void;
  /** Listens for a raise of the run's own ceiling, or of one above it. */
  onRaise(listener: () => void): void;
  /** The one that refused last: its own, or that of a run above. */
  scarce(): RunBudget;
  /** The lowest of its own and those above. */
  ceilingUsd(): number | null;
  spentUsd(): number;
}

/** @param above of the run whose step started it; null = none */
export function createRunBudget(ceilingUsd: number | null, above: RunBudget | null): RunBudget {
  let ceiling = ceilingUsd;
  let spent = 0n;
  let reserved = 0n;
  let isOwnScarce = true;
  const listeners: (() => void)[] = [];
  const budget: RunBudget = {
    reserve: (nano) => {
      const limit = ceiling === null ? null : toNanoUsd(ceiling);
      isOwnScarce = !hasRoomFor({ limit, spent, reserved }, nano);
      if (limit !== null && isOwnScarce) {
        return { scope: 'run', runId: null, limit, spent, reserved, resetsAt: null };
      }
      const refusal = above?.reserve(nano) ?? null;
      if (refusal === null) reserved += nano;
      return refusal;
    },
    settle: (held, amount) => {
      reserved -= held;
      spent += amount;
      above?.settle(held, amount);
    },
    raise: (usd) => {
      ceiling = usd;
      for (const listener of listeners) listener();
    },
    onRaise: (listener) => {
      listeners.push(listener);
      above?.onRaise(listener);
    },
    scarce: () => (isOwnScarce || above === null ? budget : above.scarce()),
    ceilingUsd: () => lowestCeiling(ceiling, above?.ceilingUsd() ?? null),
    spentUsd: () => fromNanoUsd(spent),
  };
  return budget;
}

type RunScope = Pick<ExpressionScope, 'job' | 'run'>;

function scopeOfSteps(journal: RunJournal, ids: readonly string[]): Readonly<Record<string, StepScope>> {
  const scope: Record<string, StepScope> = {};
  for (const id of ids) {
    const record = journal.find({ id, item: 0 });
    if (record !== undefined) scope[id] = toScope(journal, record);
  }
  return scope;
}

function toScope(journal: RunJournal, record: UnitRecord): StepScope {
  const items = record.items === undefined ? [] : [...journal.itemsOf(record.id).values()];
  const costNano = items.reduce((sum, item) => sum + item.costNano, record.costNano);
  return {
    status: record.state,
    cost_usd: fromNanoUsd(costNano),
    ...(record.error === undefined ? {} : { error: record.error as unknown as Json }),
    ...(record.state === 'succeeded' || record.state === 'reused'
      ? { output: journal.outputOf(record) }
      : {}),
  };
}

/** @param evaluate a condition or a value */
function evaluateWith<Value>(
  template: CompiledTemplate,
  evaluate: (template: CompiledTemplate, scope: ExpressionScope) => Value,
  scope: ExpressionScope,
): Evaluated<Value> {
  try {
    return { value: evaluate(template, scope) };
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return { error: { code: 'expression_unresolved', message: error.message } };
  }
}

export function evaluate(
  template: CompiledTemplate,
  scope: RunScope,
  journal: RunJournal,
  unit?: UnitName,
): Evaluated<Json> {
  return evaluateWith(template, evaluateTemplate, fullScope(template, scope, journal, unit));
}

function fullScope(
  template: CompiledTemplate,
  scope: RunScope,
  journal: RunJournal,
  unit?: UnitName,
): ExpressionScope {
  return {
    ...scope,
    steps: scopeOfSteps(journal, referencedSteps(template)),
    ...(unit === undefined || unit.item === 0 ? {} : itemScope(journal, unit)),
  };
}

function itemScope(journal: RunJournal, { id, item }: UnitName) {
  return {
    item: journal.find({ id, item: 0 })?.items?.[item - 1] ?? null,
    index: item - 1,
  };
}

/** Whether the steps of a local run happen, and how often; items are kept for their own inputs. */
export function decideStep(context: LocalContext, id: string): StepVerdict {
  const { journal } = context;
  const unit = { id, item: 0 };
  const verdict = judge(context, stepOf(context, id));
  switch (verdict.type) {
    case 'skip':
      journal.move(unit, 'skipped', { data: { reason: 'when' } });
      return { type: 'skip' };
    case 'fail':
      journal.move(unit, 'failed', { error: verdict.error });
      return verdict;
    case 'go':
      if (verdict.list === undefined) return { type: 'go' };
      journal.move(unit, 'running', { data: { items: verdict.list.length } });
      journal.open(unit).items = verdict.list;
      return { type: 'go', items: verdict.list.length };
  }
}

type Judged =
  | { readonly type: 'go'; readonly list?: readonly Json[] }
  | { readonly type: 'skip' }
  | { readonly type: 'fail'; readonly error: Failure };

function judge({ scope, journal }: LocalContext, { when, items }: CompiledStep): Judged {
  if (when !== null) {
    const happens = evaluateWith(when, evaluateCondition, fullScope(when, scope, journal));
    if ('error' in happens) return refuseStep('when', happens.error);
    if (!happens.value) return { type: 'skip' };
  }
  if (items === null) return { type: 'go' };
  const value = evaluateWith(items, evaluateTemplate, fullScope(items, scope, journal));
  const list = 'error' in value ? value : toItems(value.value);
  return 'error' in list ? refuseStep('for_each.items', list.error) : { type: 'go', list: list.value };
}

/** What a local run leaves: the definition's `output`, else the outputs of the steps that no other waits for, by id. */
export function evaluateOutput({
  compiled,
  scope,
  journal,
}: LocalContext): { readonly value: Json } | { readonly error: Failure } {
  const { output, steps } = compiled;
  if (output !== null) {
    const end = evaluate(output, scope, journal);
    if ('value' in end) return end;
    return { error: { ...end.error, message: `output: ${end.error.message}` } };
  }
  const awaited = new Set(steps.flatMap(({ dependencies }) => dependencies));
  const last = steps.flatMap(({ definition }, index) => (awaited.has(index) ? [] : [definition.id]));
  const known = scopeOfSteps(journal, last);
  return { value: Object.fromEntries(last.map((id) => [id, known[id]?.output ?? null])) };
}
