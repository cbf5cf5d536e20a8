/** Every expression of a definition: its syntax, and that the roots, steps and fields it names exist. */
import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import { formatPath } from '../expression/format-path.ts';
import { expressionLimits } from '../expression/limits.ts';
import { type Reference, references } from '../expression/references.ts';
import { runFields, stepFields } from '../expression/roots.ts';
import type { TemplateReading } from '../expression/template.ts';
import { createNameSuggester, type SuggestName } from '../nearest-name.ts';
import type { DefinitionTemplates } from './definition-templates.ts';
import type { DefinitionFinding, FindingCode } from './finding.ts';

export const checkExpressions = (
  { steps }: PipelineDefinition,
  { inputs, output }: DefinitionTemplates,
  suggestStep: SuggestName,
): DefinitionFinding[] => {
  const known = new Set(steps.map(({ id }) => id));
  const readings = output === null ? inputs : [...inputs, output];
  return [
    ...checkCount(readings),
    ...readings.flatMap((reading, index) => [
      ...reading.errors.map(toFinding),
      ...references(reading.template).flatMap((reference) =>
        checkReference(reference, { known, suggestStep, ownStep: steps[index]?.id }),
      ),
    ]),
  ];
};

const checkCount = (readings: readonly TemplateReading[]): DefinitionFinding[] => {
  const limit = expressionLimits.expressionsPerDefinition;
  const count = readings.reduce((sum, { template }) => sum + template.expressions, 0);
  if (count <= limit) return [];
  const message = `the definition holds ${count} expressions, at most ${limit} are allowed`;
  return [{ severity: 'error', code: 'expression_limit', pointer: '', message }];
};

const toFinding = (error: TemplateReading['errors'][number]): DefinitionFinding => ({
  severity: 'error',
  code: error.code,
  pointer: error.pointer,
  offset: error.offset,
  message: error.message,
  suggestion: error.suggestion,
});

interface ReferenceContext {
  readonly known: ReadonlySet<string>;
  readonly suggestStep: SuggestName;
  /** The step whose input mentions it; undefined in the pipeline's output. */
  readonly ownStep: string | undefined;
}

const checkReference = (reference: Reference, context: ReferenceContext): DefinitionFinding[] => {
  switch (reference.root) {
    case 'job':
      return [];
    case 'run':
      return checkField(reference, 0, runFields);
    case 'steps':
      return checkStepReference(reference, context);
    case 'item':
    case 'index':
      return [problem(reference, 'root_unavailable', `${reference.root} has a value only inside for_each`)];
  }
};

const checkStepReference = (reference: Reference, context: ReferenceContext): DefinitionFinding[] => {
  const [id] = reference.segments;
  if (typeof id !== 'string') {
    return [problem(reference, 'step_unknown', 'steps is followed by the id of a step: steps.<id>.output')];
  }
  if (!context.known.has(id)) {
    const suggestion = context.suggestStep(id);
    return [problem(reference, 'step_unknown', `there is no step ${id.slice(0, 64)}`, suggestion)];
  }
  const own =
    id === context.ownStep
      ? [problem(reference, 'expression_own_step', `the step ${id} mentions itself in its input`)]
      : [];
  return [...own, ...checkField(reference, 1, stepFields)];
};

const checkField = (
  reference: Reference,
  position: number,
  allowed: readonly string[],
): DefinitionFinding[] => {
  const field = reference.segments[position];
  if (typeof field === 'string' && allowed.includes(field)) return [];
  const owner = formatPath(reference.root, reference.segments.slice(0, position));
  const message =
    field === undefined
      ? `${owner} is followed by one of ${allowed.join(', ')}`
      : `${formatPath(owner, [field]).slice(0, 200)} does not exist; ${owner} has ${allowed.join(', ')}`;
  return [problem(reference, 'field_unknown', message, suggestField(field, allowed, owner))];
};

const suggestField = (field: unknown, allowed: readonly string[], owner: string): string | undefined => {
  if (typeof field !== 'string') return undefined;
  const near = createNameSuggester(allowed)(field);
  return (
    near ??
    (owner.startsWith('steps') ? `fields of the output are written ${owner}.output.<field>` : undefined)
  );
};

const problem = (
  { pointer, offset }: Reference,
  code: FindingCode,
  message: string,
  suggestion?: string,
): DefinitionFinding => ({ severity: 'error', code, pointer, offset, message, suggestion });
