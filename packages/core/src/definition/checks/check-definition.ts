/**
 * Runs all checks of a definition, and holds those of its structure: names of the pipeline, its steps and its keys; the
 * number of edges, cycles, and conditions on edges that can never hold.
 */
import type { PipelineDefinition, StepDefinition } from '../../contracts/pipeline.ts';
import type { Json } from '../../contracts/primitives.ts';
import { findCycles, type Graph } from '../../graph/dag.ts';
import { extendPointer, isForbiddenName, isList, isPlainObject } from '../../json/values.ts';
import { createNameSuggester, type SuggestName } from '../../nearest-name.ts';
import { finish, type Pieces } from '../../pieces.ts';
import { type AnalysedDefinition, analyseInPieces, stepsOfPiece } from '../compile.ts';
import { checkCache, checkCapabilities, checkPipelines } from './check-availability.ts';
import { checkExpressions } from './check-expressions.ts';
import { checkRaces } from './check-races.ts';
import { checkRepeats } from './check-repeats.ts';
import { checkSecrets } from './check-secrets.ts';
import { checkEscalation, checkKinds, checkSettings } from './check-settings.ts';
import { checkSchemas, checkTypes } from './check-types.ts';
import type { DefinitionFacts, DefinitionFinding } from './finding.ts';

/**
 * All findings about a definition of valid shape, given what is known about its environment, each with a JSON Pointer.
 * Without a finding of severity `error`, `compileDefinition` and a run accept the definition.
 */
export function checkDefinition(
  definition: PipelineDefinition,
  facts: DefinitionFacts,
  analysed?: AnalysedDefinition,
): DefinitionFinding[] {
  return finish(checkInPieces(definition, facts, analysed));
}

/** The same, in pieces of some hundred steps. */
export function* checkInPieces(
  definition: PipelineDefinition,
  facts: DefinitionFacts,
  analysed?: AnalysedDefinition,
): Pieces<DefinitionFinding[]> {
  const { templates, graph } = analysed ?? (yield* analyseInPieces(definition));
  const suggestStep = createNameSuggester(definition.steps.map(({ id }) => id));
  const schemas = checkSchemas(definition, facts);
  const checks: readonly (() => readonly DefinitionFinding[])[] = [
    () => checkKinds(definition),
    () => checkStepNames(definition, suggestStep),
    () => checkExpressions(definition, templates, suggestStep),
    () => checkSecrets(definition, templates, facts),
    () => checkCycles(definition, graph),
    () => checkOrder(definition, graph),
    () => checkRaces(definition, graph),
    () => checkSettings(definition),
    () => checkRepeats(definition, templates),
    () => checkEscalation(definition),
    () => schemas.findings,
    () => checkPipelines(definition, facts),
    () => checkCapabilities(definition, facts),
    () => checkCache(definition, facts),
  ];
  const found: (readonly DefinitionFinding[])[] = [];
  for (const check of checks) {
    if (definition.steps.length >= stepsOfPiece) yield;
    found.push(check());
  }
  found.push(yield* checkTypes({ definition, templates, graph, facts, isSound: schemas.isSound }));
  return found.flat();
}

/** Names of the pipeline and its steps, and the names in `depends_on`. */
function checkStepNames(
  { pipeline, steps }: PipelineDefinition,
  suggestStep: SuggestName,
): DefinitionFinding[] {
  const firstOf = new Map<string, number>();
  for (const [index, { id }] of steps.entries()) if (!firstOf.has(id)) firstOf.set(id, index);
  const names: StepNames = { firstOf, suggestStep };
  return [
    ...checkForbidden(pipeline, '/pipeline'),
    ...steps.flatMap((step, index) => [
      ...checkForbidden(step.id, `/steps/${index}/id`),
      ...checkDuplicate(step.id, index, firstOf),
      ...checkDependencies(step, index, names),
    ]),
  ];
}

function checkForbidden(name: string, pointer: string): DefinitionFinding[] {
  return isForbiddenName(name)
    ? [{ severity: 'error', code: 'name_forbidden', pointer, message: `the name ${name} is not allowed` }]
    : [];
}

function checkDuplicate(
  id: string,
  index: number,
  firstOf: ReadonlyMap<string, number>,
): DefinitionFinding[] {
  const first = firstOf.get(id);
  if (first === undefined || first === index) return [];
  const message = `the id ${id} is taken by step ${first + 1}; ids are unique within the pipeline`;
  return [{ severity: 'error', code: 'step_duplicate', pointer: `/steps/${index}/id`, message }];
}

interface StepNames {
  /** The first step with each id, by its index. */
  readonly firstOf: ReadonlyMap<string, number>;
  readonly suggestStep: SuggestName;
}

function checkDependencies(
  { id, depends_on = [] }: StepDefinition,
  index: number,
  { firstOf, suggestStep }: StepNames,
): DefinitionFinding[] {
  return depends_on.flatMap((dependency, position): DefinitionFinding[] => {
    const pointer = `/steps/${index}/depends_on/${position}`;
    if (dependency === id) {
      const message = `the step ${id} depends on itself`;
      return [{ severity: 'error', code: 'step_self_dependency', pointer, message }];
    }
    if (firstOf.has(dependency)) return [];
    const message = `there is no step ${dependency}`;
    return [
      { severity: 'error', code: 'step_unknown', pointer, message, suggestion: suggestStep(dependency) },
    ];
  });
}

const edgesPerDefinition = 50_000;

function checkOrder(
  { steps }: PipelineDefinition,
  { predecessors }: Pick<Graph, 'predecessors'>,
): DefinitionFinding[] {
  return [
    ...checkCount(predecessors.reduce((sum, before) => sum + before.length, 0)),
    ...steps.flatMap((step, index) =>
      checkRunIf(
        step,
        (predecessors[index] ?? []).flatMap((before) => steps[before] ?? []),
        `/steps/${index}/run_if`,
      ),
    ),
  ];
}

function checkCount(edges: number): DefinitionFinding[] {
  if (edges <= edgesPerDefinition) return [];
  const message = `the steps depend on each other ${edges} times, at most ${edgesPerDefinition} are allowed`;
  return [{ severity: 'error', code: 'edges_limit', pointer: '/steps', message }];
}

function checkRunIf(
  { run_if }: StepDefinition,
  dependencies: readonly StepDefinition[],
  pointer: string,
): DefinitionFinding[] {
  if (run_if !== 'any_succeeded' && run_if !== 'any_failed') return [];
  if (dependencies.length === 0) {
    const message = `run_if: ${run_if} needs a dependency, and this step has none`;
    return [{ severity: 'error', code: 'run_if_unused', pointer, message }];
  }
  if (run_if === 'any_succeeded' || dependencies.some(({ on_error }) => on_error === 'continue')) return [];
  const message = 'this step never runs: a failed step fails the run, unless it has on_error: continue';
  return [{ severity: 'warning', code: 'step_never_runs', pointer, message }];
}

/** Steps that wait for one another, by `depends_on` or by the references in their expressions. */
function checkCycles({ steps }: PipelineDefinition, graph: Graph): DefinitionFinding[] {
  return findCycles(graph).map((cycle) => {
    const ids = cycle.map((index) => steps[index]?.id ?? '');
    const message = `each of these steps waits for the next: ${formatCycle(ids)}`;
    return { severity: 'error', code: 'cycle', pointer: `/steps/${cycle[0]}`, message };
  });
}

const shownAtEachEnd = 20;

function formatCycle(ids: readonly string[]): string {
  const path = [...ids, ids[0]];
  const hidden = path.length - 2 * shownAtEachEnd;
  const shown =
    hidden > 1
      ? [...path.slice(0, shownAtEachEnd), `(${hidden} more)`, ...path.slice(-shownAtEachEnd)]
      : path;
  return shown.join(' -> ');
}

/**
 * Object keys anywhere in a definition, before its shape is known. Names that reach a prototype are errors. Keys that
 * look like templates are reported, because keys are never templates.
 */
export function checkKeys(value: Json, pointer = ''): DefinitionFinding[] {
  const findings: DefinitionFinding[] = [];
  collect(value, pointer, findings);
  return findings;
}

function collect(value: Json, pointer: string, findings: DefinitionFinding[]): void {
  if (isList(value)) {
    for (const [index, item] of value.entries()) collect(item, `${pointer}/${index}`, findings);
  } else if (isPlainObject(value)) {
    for (const key of Object.keys(value)) {
      const below = extendPointer(pointer, key);
      findings.push(...checkKey(key, below));
      collect(value[key] ?? null, below, findings);
    }
  }
}

function checkKey(key: string, pointer: string): DefinitionFinding[] {
  if (isForbiddenName(key)) {
    return [{ severity: 'error', code: 'name_forbidden', pointer, message: `the key ${key} is not allowed` }];
  }
  if (!key.includes('{{')) return [];
  const message = 'object keys are never templates; this one is taken as it is written';
  return [{ severity: 'warning', code: 'key_not_template', pointer, message }];
}
