import { describe, expect, it } from 'vitest';
import type { EscalatePolicy, PipelineDefinition } from '../../../src/contracts/pipeline.ts';
import { checkDefinition } from '../../../src/definition/checks/check-definition.ts';
import { resolveEscalation } from '../../../src/definition/step-settings.ts';
import { aDefinition, aStep } from './a-definition.ts';

const ours = {
  enabled: true,
  start_level: 0,
  max_level: 4,
  max_usd: null,
  repair: 'propose',
  on_exhausted: 'wait',
  needs_person: false,
};

describe('resolveEscalation', () => {
  it('takes the step, then the defaults, then ours, key by key', () => {
    const defaults = { escalate: { max_level: 2, max_usd: 1, repair: 'apply' } } as const;
    expect(resolveEscalation({}, aStep())).toEqual(ours);
    expect(
      resolveEscalation({ defaults }, aStep({ escalate: { max_level: 3, on_exhausted: 'fail' } })),
    ).toEqual({ ...ours, max_level: 3, max_usd: 1, repair: 'apply', on_exhausted: 'fail' });
  });

  it('never lets a model escalate', () => {
    const step = aStep({ capability: 'model.fast', escalate: { enabled: true } });
    expect(resolveEscalation({}, step).enabled).toBe(false);
  });

  it('assigns a step that is delivered at most once to a person', () => {
    const atMostOnce = { retry: { max: 0 } };
    expect(resolveEscalation({}, aStep(atMostOnce)).needs_person).toBe(true);
    expect(resolveEscalation({ defaults: atMostOnce }, aStep()).needs_person).toBe(true);
    expect(resolveEscalation({ defaults: atMostOnce }, aStep({ retry: { max: 1 } })).needs_person).toBe(
      false,
    );
  });
});

function findingsOf(definition: PipelineDefinition) {
  return checkDefinition(definition, { knownCapabilities: null, strict: false }).map(
    ({ severity, code, pointer }) => `${severity} ${code} ${pointer}`,
  );
}

const swapped = 'error escalation_levels_swapped';
const cases: [
  rule: string,
  step: Parameters<typeof aStep>[0],
  defaults: EscalatePolicy | undefined,
  found: string[],
][] = [
  ['levels in order are fine', { escalate: { start_level: 2, max_level: 2 } }, undefined, []],
  [
    'a start above the end is an error at the step',
    { escalate: { start_level: 3, max_level: 2 } },
    undefined,
    [`${swapped} /steps/0/escalate/start_level`],
  ],
  [
    'an end below the start of the defaults is an error at the step',
    { escalate: { max_level: 1 } },
    { start_level: 2 },
    [`${swapped} /steps/0/escalate/max_level`],
  ],
  [
    'defaults that contradict themselves are one error, not one a step',
    {},
    { start_level: 2, max_level: 1 },
    [`${swapped} /defaults/escalate/start_level`],
  ],
  [
    'a model with an escalation is pointed out',
    { capability: 'model.top', escalate: { enabled: true } },
    undefined,
    ['warning escalation_unused /steps/0/escalate/enabled'],
  ],
  [
    'a repair that may not be applied is pointed out',
    { retry: { max: 0 }, escalate: { repair: 'apply' } },
    undefined,
    ['warning escalation_unused /steps/0/escalate/repair'],
  ],
  [
    'what a reviewer may do is fine where one is asked',
    { optional: true, allow_output: true },
    undefined,
    [],
  ],
  [
    'what a reviewer may do is pointed out where none is asked',
    { optional: true, allow_output: true },
    { on_exhausted: 'fail' },
    ['warning review_unused /steps/0/allow_output', 'warning review_unused /steps/0/optional'],
  ],
];

describe('the checks of escalation settings', () => {
  it.each(cases)('%s', (_, step, escalate, found) => {
    const defaults = escalate === undefined ? {} : { defaults: { escalate } };
    expect(findingsOf(aDefinition({ ...defaults, steps: [aStep(step)] }))).toEqual(found);
  });
});
