/**
 * Checks that the capabilities, pipelines and cached results that a definition refers to are available. References to
 * pipelines are followed through stored definitions: runs nest up to five deep, and a cycle would never end. A cache
 * setting has no effect if the capability's spec does not call itself deterministic.
 */

import { deepestSubRun } from '../../contracts/limits.ts';
import type { PipelineDefinition, StepDefinition } from '../../contracts/pipeline.ts';
import { parseDuration } from '../../duration.ts';
import { createNameSuggester } from '../../nearest-name.ts';
import { splitReference } from '../../run/step-rules.ts';
import { resolveCache } from '../step-settings.ts';
import type { DefinitionFacts, DefinitionFinding, PipelineForm } from './finding.ts';

/** Instances come and go, so an unregistered capability is a warning unless `strict`. */
export function checkCapabilities(
  definition: PipelineDefinition,
  { knownCapabilities, strict }: Pick<DefinitionFacts, 'knownCapabilities' | 'strict'>,
): DefinitionFinding[] {
  return knownCapabilities === null
    ? []
    : findUnknown(definition.steps, knownCapabilities).map((finding) => ({
        severity: strict ? 'error' : 'warning',
        ...finding,
      }));
}

/**
 * Why a run of a sound definition cannot start now: a capability has no instance, and the step does not wait for one.
 */
export function checkRunnable(
  { steps }: PipelineDefinition,
  knownCapabilities: ReadonlySet<string>,
): DefinitionFinding[] {
  return findUnknown(
    steps,
    knownCapabilities,
    ({ wait_for_capability = '0s' }) => parseDuration(wait_for_capability) === 0,
  ).map((finding) => ({ severity: 'error', ...finding }));
}

function findUnknown(
  steps: readonly StepDefinition[],
  known: ReadonlySet<string>,
  isMeant: (step: StepDefinition) => boolean = () => true,
): Omit<DefinitionFinding, 'severity'>[] {
  const suggest = createNameSuggester(known);
  return steps.flatMap((step, index): Omit<DefinitionFinding, 'severity'>[] => {
    const { capability } = step;
    if (capability === undefined || known.has(capability) || !isMeant(step)) return [];
    return [
      {
        code: 'capability_unknown',
        pointer: `/steps/${index}/capability`,
        message: `no instance of ${capability} is registered`,
        suggestion: suggest(capability),
      },
    ];
  });
}

/** Checks that the pipelines that steps run exist, and that the references neither form a cycle nor nest too deep. */
export function checkPipelines(
  { steps }: PipelineDefinition,
  { pipelineOf = () => undefined }: Pick<DefinitionFacts, 'pipelineOf'>,
): DefinitionFinding[] {
  return steps.flatMap(({ pipeline: reference }, index): DefinitionFinding[] => {
    const form = reference === undefined ? undefined : pipelineOf(reference);
    if (form?.kind !== 'refused') return [];
    const { code, message, suggestion } = form;
    return [{ severity: 'error', code, pointer: `/steps/${index}/pipeline`, message, suggestion }];
  });
}

export interface PipelineNode {
  readonly pipeline: string;
  readonly version: string;
  /** References to the pipelines that its steps run, as written. */
  readonly references: readonly string[];
  /** It is stored, but the content that is being checked comes with a different one under the same version. */
  readonly isContradicted?: boolean;
}

/** References to the pipelines that its steps run, as written, without duplicates. */
export function referencesOf({ steps }: Pick<PipelineDefinition, 'steps'>): string[] {
  return [...new Set(steps.flatMap(({ pipeline }) => pipeline ?? []))];
}

/** @param reference `name@version`, or `name@latest` for the last of that name */
export function findPipeline<P extends Pick<PipelineDefinition, 'pipeline' | 'version'>>(
  pipelines: readonly P[],
  reference: string,
): P | undefined {
  const [name, version] = splitReference(reference);
  const named = pipelines.filter(({ pipeline }) => pipeline === name);
  return named.find((one) => one.version === version) ?? (version === 'latest' ? named.at(-1) : undefined);
}

type Refused = Extract<PipelineForm, { kind: 'refused' }>;

/**
 * @param root the definition that is checked: it counts as stored, and as the latest of its name
 * @param nodeOf returns undefined for a definition that is not stored
 * @returns a function that finds the fault of a root's reference, or null
 */
export function createReferenceJudge(
  root: PipelineNode,
  nodeOf: (reference: string) => PipelineNode | undefined,
): (reference: string) => Refused | null {
  const judged = new Map<string, Refused | null>();

  const judge = (reference: string, path: readonly string[]): Refused | null => {
    const node = isOf(root, reference) ? root : nodeOf(reference);
    if (node === undefined) return unknown(reference, path);
    if (node.isContradicted === true) return contradicted(nameOf(node));
    const name = nameOf(node);
    if (path.includes(name)) return cycle([...path, name]);
    if (path.length > deepestSubRun) return tooDeep([...path, name]);
    const key = `${path.length} ${name}`;
    const before = judged.get(key);
    if (before !== undefined) return before;
    let fault: Refused | null = null;
    for (const below of node.references) {
      fault = judge(below, [...path, name]);
      if (fault !== null) break;
    }
    judged.set(key, fault);
    return fault;
  };

  return (reference) => judge(reference, [nameOf(root)]);
}

function nameOf({ pipeline, version }: PipelineNode): string {
  return `${pipeline}@${version}`;
}

function isOf({ pipeline, version }: PipelineNode, reference: string): boolean {
  return reference === `${pipeline}@${version}` || reference === `${pipeline}@latest`;
}

function unknown(reference: string, path: readonly string[]): Refused {
  return {
    kind: 'refused',
    code: 'pipeline_unknown',
    message:
      path.length === 1
        ? `there is no pipeline ${reference}`
        : `there is no pipeline ${reference}, which ${path.at(-1)} runs`,
  };
}

function contradicted(name: string): Refused {
  return {
    kind: 'refused',
    code: 'version_conflict',
    message: `${name} is stored with another content than the one beside this definition, which needs a new version`,
  };
}

function cycle(path: readonly string[]): Refused {
  return {
    kind: 'refused',
    code: 'pipeline_cycle',
    message: `these pipelines form a cycle: ${path.join(' -> ')}`,
  };
}

function tooDeep(path: readonly string[]): Refused {
  return {
    kind: 'refused',
    code: 'pipeline_depth',
    message: `pipelines run pipelines at most ${deepestSubRun} deep: ${path.join(' -> ')}`,
  };
}

/** Checks only the steps' own keys: `defaults` apply just to the steps that they suit. */
export function checkCache(
  definition: PipelineDefinition,
  { specsOf }: Pick<DefinitionFacts, 'specsOf'>,
): DefinitionFinding[] {
  return definition.steps.flatMap((step, index) =>
    isInVain(step, specsOf) ? [notDeterministic(step, `/steps/${index}/cache`)] : [],
  );
}

function isInVain(step: StepDefinition, specsOf: DefinitionFacts['specsOf']): boolean {
  if (step.cache === undefined || resolveCache({}, step)?.insists !== false) return false;
  const specs = specsOf?.(step) ?? [];
  return specs.length > 0 && !specs.some(({ isDeterministic }) => isDeterministic);
}

function notDeterministic({ capability }: StepDefinition, pointer: string): DefinitionFinding {
  return {
    severity: 'warning',
    code: 'cache_unused',
    pointer,
    message: `the spec of ${capability} does not say that it is deterministic, so every call is made`,
    suggestion:
      'let the spec say "deterministic": true, or write insist: true where a result of an equal call will do',
  };
}
