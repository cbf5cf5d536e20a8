/**
 * Checks where a definition names secrets: in the input of a step that calls a capability, alone in its `{{ }}`, and
 * only secrets that the project has and that the capability may receive.
 */
import type { PipelineDefinition, StepDefinition } from '../../contracts/pipeline.ts';
import type { Reference } from '../../expression/template.ts';
import { createNameSuggester } from '../../nearest-name.ts';
import { describeExcess, isForCapability } from '../../secrets/receivers.ts';
import { listNamedSecrets } from '../../secrets/secret-places.ts';
import type { DefinitionTemplates, ReferencingTemplate } from '../compile.ts';
import { stepKindOf } from '../step-settings.ts';
import type { DefinitionFacts, DefinitionFinding } from './finding.ts';

export function checkSecrets(
  { steps }: PipelineDefinition,
  templates: DefinitionTemplates,
  { secrets }: Pick<DefinitionFacts, 'secrets'>,
): DefinitionFinding[] {
  const labels = templates.labels.map(([, reading]) => reading);
  const others = [templates.output, templates.concurrencyKey, ...labels];
  return [
    ...templates.steps.flatMap(({ input, when, counts, items, until, title, key }, index) => {
      const step = steps[index];
      const isCall = step !== undefined && stepKindOf(step) === 'call';
      const rest = [when, counts, items, until, title, key, ...(isCall ? [] : [input])].flatMap(
        findMisplaced,
      );
      return isCall ? [...rest, ...checkInput(step, input, secrets)] : rest;
    }),
    ...others.flatMap(findMisplaced),
  ];
}

function findMisplaced(reading: ReferencingTemplate | null): DefinitionFinding[] {
  return namedIn(reading).map((reference) =>
    problem(
      reference,
      'secret_misplaced',
      'a secret has a place only in the input of a step with capability',
    ),
  );
}

function namedIn(reading: ReferencingTemplate | null): readonly Reference[] {
  return (reading?.references ?? []).filter(({ root }) => root === 'secrets');
}

function checkInput(
  step: StepDefinition,
  input: ReferencingTemplate,
  known: DefinitionFacts['secrets'],
): DefinitionFinding[] {
  const references = namedIn(input);
  if (references.length === 0) return [];
  const named = listNamedSecrets(input.template);
  const isNamed = ({ pointer, offset }: Reference): boolean =>
    named.some((one) => one.pointer === pointer && one.offset === offset);
  const wrong = references
    .filter((reference) => !isNamed(reference))
    .map((reference) =>
      problem(
        reference,
        'secret_misplaced',
        'a secret stands alone in its {{ }}, as {{ secrets.NAME }}: without a filter, an operator or a field',
      ),
    );
  if (known === undefined) return wrong;
  return [...wrong, ...named.flatMap((one) => judge(step, one, known)), ...findExcess(named, known)];
}

/** At the first secret that the step names. */
function findExcess(
  named: ReturnType<typeof listNamedSecrets>,
  known: NonNullable<DefinitionFacts['secrets']>,
): DefinitionFinding[] {
  const secrets = [...new Set(named.map(({ name }) => name))].flatMap((name) => known.get(name) ?? []);
  const excess = describeExcess(secrets);
  const [first] = named;
  return excess === null || first === undefined ? [] : [problem(first, 'secrets_too_large', excess)];
}

const mostShown = 20;

function judge(
  { capability = '' }: StepDefinition,
  named: { readonly name: string; readonly pointer: string; readonly offset: number },
  known: NonNullable<DefinitionFacts['secrets']>,
): DefinitionFinding[] {
  const { name } = named;
  const secret = known.get(name);
  if (secret === undefined) {
    const names = [...known.keys()].sort();
    const shown = names.length === 0 ? 'it has none' : `there are ${names.slice(0, mostShown).join(', ')}`;
    const message = `the project has no secret ${name.slice(0, 64)}; ${shown}`;
    return [problem(named, 'secret_unknown', message, createNameSuggester(names)(name))];
  }
  if (isForCapability(secret, capability)) return [];
  const message = `${capability} may not receive the secret ${name}, which is for ${secret.capabilities.slice(0, mostShown).join(', ')}`;
  return [problem(named, 'secret_not_allowed', message)];
}

function problem(
  { pointer, offset }: Pick<Reference, 'pointer' | 'offset'>,
  code: 'secret_misplaced' | 'secret_unknown' | 'secret_not_allowed' | 'secrets_too_large',
  ...[message, suggestion]: readonly [message: string, suggestion?: string | undefined]
): DefinitionFinding {
  return { severity: 'error', code, pointer, offset, message, suggestion };
}
