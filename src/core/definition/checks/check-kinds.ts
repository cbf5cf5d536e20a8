/** That a step is one thing, and that its other keys say something about a thing of that kind. */
import type { PipelineDefinition, StepDefinition } from '../../../contracts/pipeline.ts';
import { dispatchWish, mostRedeliveries } from '../compile/step-settings.ts';
import { type StepKind, stepKindOf } from '../step-kind.ts';
import type { DefinitionFinding } from './finding.ts';

type StepField = keyof StepDefinition;

const kindKeys = ['capability', 'pipeline', 'wait', 'review'] as const satisfies readonly StepField[];

const keyOf: Readonly<Record<StepKind, (typeof kindKeys)[number]>> = {
  call: 'capability',
  run: 'pipeline',
  wait: 'wait',
  review: 'review',
};

/** Keys that say nothing about every step: about which they do. */
const kindsOfKey: Partial<Readonly<Record<StepField, readonly StepKind[]>>> = {
  input: ['call', 'run', 'review'],
  priority: ['call', 'run'],
  budget_ceiling_usd: ['call', 'run'],
  optional: ['call', 'review'],
  retry: ['call'],
  timeout: ['call'],
  total_timeout: ['call'],
  escalate: ['call'],
  cache: ['call'],
  capability_version: ['call'],
  tags: ['call'],
  dispatch: ['call'],
  wait_for_capability: ['call'],
  allow_output: ['call'],
};

export function checkKinds(definition: PipelineDefinition): DefinitionFinding[] {
  return definition.steps.flatMap((step, index) => {
    const pointer = `/steps/${index}`;
    const seen = kindKeys.filter((key) => step[key] !== undefined);
    if (seen.length !== 1) return [wrongKind(seen, pointer)];
    return [...checkKeys(step, pointer), ...checkDispatch(definition, step, pointer)];
  });
}

function wrongKind(seen: readonly string[], pointer: string): DefinitionFinding {
  return seen.length === 0
    ? {
        severity: 'error',
        code: 'kind_missing',
        pointer,
        message: `a step has one of ${kindKeys.join(', ')}; this has none`,
      }
    : {
        severity: 'error',
        code: 'kind_several',
        pointer: `${pointer}/${seen[1]}`,
        message: `a step has one of ${kindKeys.join(', ')}; this has ${seen.join(' and ')}`,
      };
}

function checkKeys(step: StepDefinition, pointer: string): DefinitionFinding[] {
  const kind = stepKindOf(step);
  return Object.keys(step).flatMap((key): DefinitionFinding[] => {
    const allowed = kindsOfKey[key as StepField];
    if (allowed === undefined || step[key as StepField] === undefined || allowed.includes(kind)) return [];
    const owners = allowed.map((owner) => keyOf[owner]).join(', ');
    const message = `${key} says nothing about a step with ${keyOf[kind]}, only about one with ${owners}`;
    return [{ severity: 'error', code: 'key_not_applicable', pointer: `${pointer}/${key}`, message }];
  });
}

/** A step without a queue in between is executed again when its worker is lost. */
function checkDispatch(
  definition: PipelineDefinition,
  step: StepDefinition,
  pointer: string,
): DefinitionFinding[] {
  if (dispatchWish(definition, step) !== 'inline' || stepKindOf(step) !== 'call') return [];
  if (mostRedeliveries(definition, step) > 0) return [];
  const message = 'an inline step may be delivered again, but retry.max is 0; use dispatch: queued';
  const place = step.dispatch === undefined ? pointer : `${pointer}/dispatch`;
  return [{ severity: 'error', code: 'dispatch_conflict', pointer: place, message }];
}
