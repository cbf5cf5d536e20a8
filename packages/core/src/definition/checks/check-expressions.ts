/** Checks every expression of a definition: its syntax, and that its roots, steps and fields exist. */
import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import { formatPath } from '../../expression/ast.ts';
import {
  delimiters,
  expressionLimits,
  roundFields,
  runFields,
  stepFields,
} from '../../expression/language.ts';
import type { Reference, TemplateReading } from '../../expression/template.ts';
import { createNameSuggester, type SuggestName } from '../../nearest-name.ts';
import { type DefinitionTemplates, listReadings, type ReferencingTemplate } from '../compile.ts';
import { type DefinitionFinding, refuseExpression } from './finding.ts';

export function checkExpressions(
  definition: PipelineDefinition,
  templates: DefinitionTemplates,
  suggestStep: SuggestName,
): DefinitionFinding[] {
  const known = new Set(definition.steps.map(({ id }) => id));
  const places = listPlaces(definition, templates);
  return [
    ...checkTags(definition),
    ...checkCount(places),
    ...places.flatMap((place) => [
      ...place.reading.errors.map(toFinding),
      ...place.reading.references.flatMap((reference) =>
        checkReference(reference, { known, suggestStep, place }),
      ),
    ]),
  ];
}

/** No instance carries a tag with `{{ }}`, so it is a mistake. */
function checkTags({ steps }: PipelineDefinition): DefinitionFinding[] {
  return steps.flatMap(({ tags = [] }, index) =>
    tags.flatMap((tag, at): DefinitionFinding[] => {
      if (!tag.includes(delimiters.open)) return [];
      const pointer = `/steps/${index}/tags/${at}`;
      return [{ severity: 'error', code: 'expression_unused', pointer, message: refuseExpression('tags') }];
    }),
  );
}

/** Where an expression occurs, and what it may refer to there. */
interface ExpressionPlace {
  readonly reading: ReferencingTemplate;
  /** The step that contains the template. */
  readonly ownStep?: string;
  /** `item` and `index` have values here. */
  readonly isPerItem?: boolean;
  /** `round` has these fields here. */
  readonly round?: readonly (typeof roundFields)[number][];
  /** No step has run yet. */
  readonly isBeforeRun?: boolean;
}

function listPlaces({ steps }: PipelineDefinition, templates: DefinitionTemplates): ExpressionPlace[] {
  const { output, concurrencyKey, labels } = templates;
  const ofSteps = templates.steps.flatMap((step, index): ExpressionPlace[] => {
    const ownStep = steps[index]?.id ?? '';
    const isPerItem = step.items !== null;
    const perRound = step.until === null ? {} : { round: ['index', 'previous'] as const };
    return listReadings(step).map((reading) => {
      if (reading === step.items) return { reading, ownStep };
      if (reading === step.until) return { reading, ownStep, round: roundFields };
      const isOfRound = reading === step.input || reading === step.title;
      return { reading, ownStep, isPerItem, ...(isOfRound ? perRound : {}) };
    });
  });
  return [
    ...(concurrencyKey === null ? [] : [{ reading: concurrencyKey, isBeforeRun: true }]),
    ...labels.map(([, reading]) => ({ reading, isBeforeRun: true })),
    ...ofSteps,
    ...(output === null ? [] : [{ reading: output }]),
  ];
}

function checkCount(places: readonly ExpressionPlace[]): DefinitionFinding[] {
  const limit = expressionLimits.expressionsPerDefinition;
  const count = places.reduce((sum, { reading }) => sum + reading.template.expressions, 0);
  if (count <= limit) return [];
  const message = `the definition holds ${count} expressions, at most ${limit} are allowed`;
  return [{ severity: 'error', code: 'expression_limit', pointer: '', message }];
}

function toFinding(error: TemplateReading['errors'][number]): DefinitionFinding {
  return {
    severity: 'error',
    code: error.code,
    pointer: error.pointer,
    offset: error.offset,
    message: error.message,
    suggestion: error.suggestion,
  };
}

interface ReferenceContext {
  readonly known: ReadonlySet<string>;
  readonly suggestStep: SuggestName;
  readonly place: ExpressionPlace;
}

function checkReference(reference: Reference, context: ReferenceContext): DefinitionFinding[] {
  if (reference.root === 'secrets') return []; // check-secrets.ts
  const { isPerItem = false, isBeforeRun = false } = context.place;
  if (isBeforeRun && reference.root !== 'job' && reference.root !== 'run') {
    const message = `${reference.root} has no value before a run; use job or run`;
    return [problem(reference, { code: 'root_unavailable', message })];
  }
  switch (reference.root) {
    case 'job':
      return [];
    case 'run':
      return checkField(reference, 0, runFields);
    case 'steps':
      return checkStepReference(reference, context);
    case 'item':
    case 'index':
      if (isPerItem) return [];
      return [
        problem(reference, {
          code: 'root_unavailable',
          message: `${reference.root} has a value only in the input, when, review.title or event.key of a step with for_each`,
        }),
      ];
    case 'round':
      return checkRound(reference, context.place);
  }
}

function checkRound(reference: Reference, { round }: ExpressionPlace): DefinitionFinding[] {
  if (round === undefined) {
    const message = 'round has a value only in the input, set or repeat.until of a step with repeat';
    return [problem(reference, { code: 'root_unavailable', message })];
  }
  if (reference.segments[0] === 'output' && !round.includes('output')) {
    const message = 'round.output has a value only in repeat.until: here the round has not begun';
    const suggestion =
      'the output of the round before is round.previous, which the first round does not have';
    return [problem(reference, { code: 'root_unavailable', message, suggestion })];
  }
  return checkField(reference, 0, round);
}

function checkStepReference(reference: Reference, context: ReferenceContext): DefinitionFinding[] {
  const [id] = reference.segments;
  if (typeof id !== 'string') {
    const message = 'steps is followed by the id of a step: steps.<id>.output';
    return [problem(reference, { code: 'step_unknown', message })];
  }
  if (!context.known.has(id)) {
    const suggestion = context.suggestStep(id);
    const message = `there is no step ${id.slice(0, 64)}`;
    return [problem(reference, { code: 'step_unknown', message, suggestion })];
  }
  const own =
    id === context.place.ownStep
      ? [problem(reference, { code: 'expression_own_step', message: `the step ${id} mentions itself` })]
      : [];
  return [...own, ...checkField(reference, 1, stepFields)];
}

function checkField(reference: Reference, position: number, allowed: readonly string[]): DefinitionFinding[] {
  const field = reference.segments[position];
  if (typeof field === 'string' && allowed.includes(field)) return [];
  const owner = formatPath(reference.root, reference.segments.slice(0, position));
  const message =
    field === undefined
      ? `${owner} is followed by one of ${allowed.join(', ')}`
      : `${formatPath(owner, [field]).slice(0, 200)} does not exist; ${owner} has ${allowed.join(', ')}`;
  const suggestion = suggestField(field, allowed, owner);
  return [problem(reference, { code: 'field_unknown', message, suggestion })];
}

function suggestField(field: unknown, allowed: readonly string[], owner: string): string | undefined {
  if (typeof field !== 'string') return undefined;
  const near = createNameSuggester(allowed)(field);
  return (
    near ??
    (owner.startsWith('steps') ? `fields of the output are written ${owner}.output.<field>` : undefined)
  );
}

function problem(
  { pointer, offset }: Reference,
  fault: Pick<DefinitionFinding, 'code' | 'message' | 'suggestion'>,
): DefinitionFinding {
  return { severity: 'error', pointer, offset, ...fault };
}
