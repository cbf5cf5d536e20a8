/**
 * Checks the values passed between steps by the schemas of producers and consumers: that paths exist, that operators
 * and filters get operands they accept, that inputs fit. Types are wider than the values they describe, so an error is
 * certain. Uncertain cases yield nothing, or a warning or note.
 *
 * Also checks the JSON Schemas in a definition: those of its job and of review answers.
 */
import { mostItems } from '../../contracts/limits.ts';
import type { PipelineDefinition, StepDefinition } from '../../contracts/pipeline.ts';
import type { JsonObject } from '../../contracts/primitives.ts';
import type { TemplateReading } from '../../expression/template.ts';
import { findSchemaFault } from '../../foreign-schema.ts';
import type { Graph } from '../../graph/dag.ts';
import { extendPointer } from '../../json/values.ts';
import type { Pieces } from '../../pieces.ts';
import {
  describeType,
  intersectionOf,
  itemTypeOf,
  typeOfValue,
  unionOf,
} from '../../schema-types/combine-types.ts';
import { listNotEnforced, type UnenforcedKeyword } from '../../schema-types/not-enforced.ts';
import { typeOfSchema } from '../../schema-types/schema-type.ts';
import { type TemplateTypes, typeOfNode, typeTemplate } from '../../schema-types/template-type.ts';
import {
  anyType,
  booleanKinds,
  type Effort,
  isKind,
  kinds,
  listOf,
  nullType,
  objectType,
  scalarKinds,
  type ValueType,
  withoutKinds,
} from '../../schema-types/value-type.ts';
import {
  type DefinitionTemplates,
  isWhenOfItem,
  listReadings,
  type StepTemplates,
  stepsOfPiece,
} from '../compile.ts';
import { enoughOf } from '../step-settings.ts';
import { checkInput, consumerOf, producedBy, withGaps } from './check-input.ts';
import { checkLists } from './check-lists.ts';
import type { DefinitionFacts, DefinitionFinding } from './finding.ts';
import { findLacks, needsAll, type StepLacks, startOf, type TypeScope } from './type-scope.ts';

interface TypedDefinition {
  readonly definition: PipelineDefinition;
  readonly templates: DefinitionTemplates;
  readonly graph: Graph;
  readonly facts: DefinitionFacts;
  /** Whether the checks may use a schema of the definition. */
  readonly isSound: (schema: JsonObject) => boolean;
}

interface Checking extends TypedDefinition {
  readonly job: ValueType;
  readonly outputs: Map<string, ValueType>;
  readonly indexes: ReadonlyMap<string, number>;
  readonly lacks: StepLacks;
  /** Effort left for comparing types. */
  readonly effort: Effort;
  /** Effort left for validating values. */
  readonly work: Effort;
  readonly report: (finding: DefinitionFinding) => void;
}

const allEffort = 1_000_000;
/** About half a second. */
const allWork = 100_000_000;

export function* checkTypes(typed: TypedDefinition): Pieces<DefinitionFinding[]> {
  const findings: DefinitionFinding[] = [];
  const { definition, templates, graph } = typed;
  const checking: Checking = {
    ...typed,
    job: readJob(typed),
    outputs: new Map(),
    indexes: new Map(definition.steps.map(({ id }, index) => [id, index])),
    lacks: findLacks(definition, templates, graph),
    effort: { left: allEffort },
    work: { left: allWork },
    report: (finding) => findings.push(finding),
  };
  yield* checkSteps(graph.order, checking);
  checkRest(templates, checking);
  const outputs = yield* outputsOfJob(checking);
  findings.push(...checkLists({ ...typed, outputs }));
  if (checking.effort.left < 0 || checking.work.left < 0) findings.push(cutShort);
  return findings;
}

/** The outputs of a run of a known job, which has lists of known lengths. */
function* outputsOfJob(checking: Checking): Pieces<Checking['outputs']> {
  const { facts, graph } = checking;
  if (facts.job === undefined) return checking.outputs;
  const ofJob: Checking = {
    ...checking,
    job: typeOfValue(facts.job),
    outputs: new Map(),
    effort: { left: allEffort },
    work: { left: 0 },
    report: () => undefined,
  };
  yield* checkSteps(graph.order, ofJob);
  return ofJob.outputs;
}

function* checkSteps(order: readonly number[], checking: Checking): Pieces<void> {
  for (const [at, index] of order.entries()) {
    checkStep(index, checking);
    if ((at + 1) % stepsOfPiece === 0) yield;
  }
}

const cutShort: DefinitionFinding = {
  severity: 'note',
  code: 'types_limit',
  pointer: '',
  message: 'the schemas and inputs are too large to compare all of them',
};

function readJob({ definition: { job_schema }, isSound }: TypedDefinition): ValueType {
  return job_schema === undefined || !isSound(job_schema)
    ? objectType
    : intersectionOf([objectType, typeOfSchema(job_schema)]);
}

function checkStep(index: number, checking: Checking): void {
  const { definition, templates, graph, facts, isSound, outputs } = checking;
  const step = definition.steps[index];
  const readings = templates.steps[index];
  if (step === undefined || readings === undefined) return;
  const pointer = `/steps/${index}`;
  const before = graph.predecessors[index] ?? [];
  const isWhole = needsAll(step, before.length);
  const scope = withRace(step, scopeFor(checking, isWhole), before.length);
  if (isWhole && before.some((other) => checking.lacks[other]?.isOwn)) noteSkipped(index, readings, checking);
  const list = readings.items === null ? null : typeOf(readings.items, scope, checking);
  const items = list === null ? null : checkItems(list, pointer, checking);
  if (items !== null) checkEnough(step, items, { pointer, report: checking.report });
  const called = step.set === undefined ? producedBy(step, facts, isSound) : anyType;
  const round = readings.until === null ? null : { output: called };
  const inputScope = { ...scope, item: items === null ? null : itemTypeOf(items), round };
  if (readings.title !== null) {
    const type = typeOf(readings.title, inputScope, checking);
    checkScalar(type, { key: 'review.title', pointer: `${pointer}/review/title` }, checking);
  }
  if (readings.key !== null) {
    const type = typeOf(readings.key, inputScope, checking);
    checkScalar(type, { key: 'event.key', pointer: `${pointer}/event/key` }, checking);
  }
  const types = read(readings.input, inputScope, checking);
  if (typeof step.input === 'string')
    checkWhole(typeOfNode(readings.input.template.root, types), pointer, checking);
  const consumer = consumerOf(step, facts);
  if (consumer !== null) {
    const { effort, work, report } = checking;
    const input = { written: step.input ?? {}, root: readings.input.template.root, types };
    checkInput({ consumer, input, pointer: `${pointer}/input`, effort, work, report });
  }
  const produced =
    step.set === undefined ? called : withGaps(step, typeOfNode(readings.input.template.root, types));
  checkTests(readings, { scope: inputScope, produced, pointer }, checking);
  const some = isWhenOfItem(readings) ? unionOf([produced, nullType]) : produced;
  outputs.set(step.id, items === null ? produced : listOf(some, items.list));
}

/** @param isWhole every referenced output exists, or the expression is never evaluated */
function scopeFor({ job, outputs, indexes, lacks }: Checking, isWhole: boolean): TypeScope {
  return {
    job,
    outputs,
    whyMissing: (id) => (isWhole ? undefined : lacks[indexes.get(id) ?? -1]?.reason),
    item: null,
    round: null,
  };
}

/** A step with `first` may start before some of its branches have an output; all its other dependencies have one. */
function withRace(
  { first, depends_on = [] }: StepDefinition,
  scope: TypeScope,
  dependencies: number,
): TypeScope {
  if (first === undefined || first >= dependencies) return scope;
  const branches = new Set(depends_on);
  const whyMissing = (id: string) => (branches.has(id) ? `${id} may not have succeeded by then` : undefined);
  return { ...scope, whyMissing };
}

function read(reading: TemplateReading, scope: TypeScope, { effort, report }: Checking): TemplateTypes {
  return typeTemplate(reading.template.root, {
    startOf: (path) => startOf(path, scope),
    effort,
    report: (pointer, fault) => report({ ...fault, pointer }),
  });
}

function typeOf(reading: TemplateReading, scope: TypeScope, checking: Checking): ValueType {
  return typeOfNode(reading.template.root, read(reading, scope, checking));
}

/**
 * Notes the steps that skip this one too if they end without output. `??` has no effect there, because the skip comes
 * first.
 */
function noteSkipped(index: number, readings: StepTemplates, checking: Checking): void {
  const { definition, lacks, indexes, report } = checking;
  const told = new Set<string>();
  for (const reading of listReadings(readings)) {
    for (const { root, segments, pointer, offset } of reading.references) {
      const [id, field] = segments;
      if (root !== 'steps' || typeof id !== 'string' || field !== 'output' || told.has(id)) continue;
      told.add(id);
      const lack = lacks[indexes.get(id) ?? -1];
      if (!lack?.isOwn) continue;
      const message = `${lack.reason}, then ${definition.steps[index]?.id} is skipped too`;
      const suggestion = 'with run_if: all_done it runs all the same; then add ?? with a default';
      report({ severity: 'note', code: 'step_may_be_skipped', pointer, offset, message, suggestion });
    }
  }
}

interface TestedStep {
  readonly scope: TypeScope;
  readonly produced: ValueType;
  readonly pointer: string;
}

/** The conditions of a step, of its rounds, and of the answers of its items. */
function checkTests(
  { when, until, counts }: StepTemplates,
  { scope, produced, pointer }: TestedStep,
  checking: Checking,
): void {
  if (when !== null)
    checkBoolean(typeOf(when, { ...scope, round: null }, checking), `${pointer}/when`, checking);
  if (until !== null) {
    const judged = typeOf(until, { ...scope, item: null, round: { output: produced } }, checking);
    checkBoolean(judged, `${pointer}/repeat/until`, checking);
  }
  if (counts === null) return;
  const answer = isKind(produced, ~kinds.null) ? withoutKinds(produced, kinds.null) : produced;
  checkBoolean(typeOf(counts, { ...scope, answer }, checking), `${pointer}/for_each/enough/if`, checking);
}

function checkBoolean(type: ValueType, pointer: string, { report }: Checking): void {
  if (type.kinds === 0 || isKind(type, booleanKinds)) return;
  const message = `a boolean is needed, not ${describeType(type)}`;
  const suggestion = 'compare instead: a == b';
  report({ severity: 'error', code: 'operand_invalid', pointer, message, suggestion });
}

/** Of an input that one expression gives. */
function checkWhole(type: ValueType, pointer: string, { report }: Checking): void {
  if (type.kinds === 0 || isKind(type, kinds.object)) return;
  const message = `the input is an object, not ${describeType(type)}`;
  report({ severity: 'error', code: 'type_mismatch', pointer: `${pointer}/input`, message });
}

/** @returns the type of the list that `for_each` iterates over, as far as it is known */
function checkItems(type: ValueType, pointer: string, { report }: Checking): ValueType {
  const at = `${pointer}/for_each/items`;
  if (!isKind(type, kinds.list) && type.kinds !== 0) {
    const message = `for_each.items takes a list, not ${describeType(type)}`;
    report({ severity: 'error', code: 'type_mismatch', pointer: at, message });
    return anyType;
  }
  if (type.list.least > mostItems) {
    const message = `for_each takes at most ${mostItems} items, not ${type.list.least}`;
    report({ severity: 'error', code: 'items_limit', pointer: at, message });
  }
  return type;
}

function checkEnough(
  { for_each }: StepDefinition,
  { list }: ValueType,
  { pointer, report }: Pick<Checking, 'report'> & { readonly pointer: string },
): void {
  const enough = for_each === undefined ? null : enoughOf(for_each);
  if (enough === null || list.most >= enough.count) return;
  const at = `${pointer}/for_each/enough`;
  const message = `${enough.count} items are needed, and the list has at most ${list.most}`;
  report({ severity: 'error', code: 'race_unreachable', pointer: at, message });
}

/** Checks the templates outside steps. */
function checkRest({ output, concurrencyKey, labels }: DefinitionTemplates, checking: Checking): void {
  const scope = scopeFor(checking, false);
  if (output !== null) read(output, scope, checking);
  if (concurrencyKey !== null) {
    const type = typeOf(concurrencyKey, scope, checking);
    checkScalar(type, { key: 'concurrency.key', pointer: '/concurrency/key' }, checking);
  }
  for (const [name, reading] of labels) {
    const pointer = extendPointer('/labels', name);
    checkScalar(typeOf(reading, scope, checking), { key: 'a label', pointer }, checking);
  }
}

interface ScalarPlace {
  readonly key: string;
  readonly pointer: string;
}

function checkScalar(type: ValueType, { key, pointer }: ScalarPlace, { report }: Checking): void {
  if (type.kinds === 0 || isKind(type, scalarKinds)) return;
  const message = `${key} is a string, number or boolean, not ${describeType(type)}`;
  report({ severity: 'error', code: 'type_mismatch', pointer, message });
}

interface SchemaChecks {
  readonly findings: readonly DefinitionFinding[];
  /** Whether a schema may be used. */
  readonly isSound: (schema: JsonObject) => boolean;
}

interface OwnSchema {
  readonly schema: JsonObject;
  readonly pointer: string;
}

export function listOwnSchemas({ job_schema, steps }: PipelineDefinition): readonly OwnSchema[] {
  return [
    ...(job_schema === undefined ? [] : [{ schema: job_schema, pointer: '/job_schema' }]),
    ...steps.flatMap((step, index) =>
      (['review', 'event'] as const).flatMap((kind) => {
        const schema = step[kind]?.schema;
        return schema === undefined ? [] : [{ schema, pointer: `/steps/${index}/${kind}/schema` }];
      }),
    ),
  ];
}

export function checkSchemas(
  definition: PipelineDefinition,
  { schemaFaultOf = () => null }: Pick<DefinitionFacts, 'schemaFaultOf'>,
): SchemaChecks {
  const sound = new Set<JsonObject>();
  const findings = listOwnSchemas(definition).flatMap(({ schema, pointer }): DefinitionFinding[] => {
    const fault = findSchemaFault(schema) ?? schemaFaultOf(schema);
    if (fault !== null) return [invalid(pointer, fault)];
    sound.add(schema);
    const notes = listNotEnforced(schema).map((gap) => noteGap(pointer, gap));
    if (schema !== definition.job_schema || isKind(typeOfSchema(schema), kinds.object)) return notes;
    return [...notes, invalid(pointer, 'a job is an object, but the schema allows none')];
  });
  return { findings, isSound: (schema) => sound.has(schema) };
}

function noteGap(schema: string, { pointer, keyword, reason }: UnenforcedKeyword): DefinitionFinding {
  return {
    severity: 'note',
    code: 'pattern_not_enforced',
    pointer: `${schema}${pointer}`,
    message: `${keyword} is not enforced: ${reason}`,
  };
}

function invalid(pointer: string, message: string): DefinitionFinding {
  return {
    severity: 'error',
    code: 'schema_invalid',
    pointer,
    message: `the schema cannot be used: ${message}`,
  };
}
