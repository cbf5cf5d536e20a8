import {
  type ConformanceCase,
  echo,
  happy,
  refused,
  rejects,
  type Script,
  succeeded,
  unhappy,
} from '../case.ts';

const script: Script = { capabilities: { x: echo } };

/** Two equal calls, one after the other. */
function twice(cache: object, more: object = {}) {
  const a = { id: 'a', capability: 'x', input: { n: 1 }, cache, ...more };
  return { steps: [a, { ...a, id: 'b', depends_on: ['a'] }] };
}

const both = { ...succeeded, output: { b: { n: 1 } } } as const;
const kept = { ttl: '1h', insist: true };

export const cacheCases: readonly ConformanceCase[] = [
  happy('step.cache', 'a step may use the result of an equal call', twice(kept), {
    script,
    expected: both,
  }),
  unhappy(
    'step.cache',
    'the result of a refused call is not cached',
    twice(kept, { escalate: { enabled: false }, on_error: 'continue', run_if: 'all_done' }),
    {
      script: { capabilities: { x: rejects } },
      expected: { outcome: 'succeeded', steps: { b: { state: 'failed', attempts: 1 } }, calls: { x: 2 } },
    },
  ),
  happy(
    'cache.ttl',
    '0s makes every call, also if the defaults have a cache',
    {
      ...twice({ ttl: '0s' }),
      defaults: { cache: kept },
    },
    { script, expected: { ...both, calls: { x: 2 } } },
  ),
  unhappy(
    'cache.ttl',
    'more than 90 days is refused',
    twice({ ttl: '91d' }),
    refused('duration_out_of_range', '/steps/0/cache/ttl'),
  ),
  happy('cache.scope', 'run: a run uses its own results', twice({ ...kept, scope: 'run' }), {
    script,
    expected: both,
  }),
  unhappy(
    'cache.scope',
    'a scope across projects is refused',
    twice({ ...kept, scope: 'global' }),
    refused('value_invalid', '/steps/0/cache/scope'),
  ),
  happy(
    'cache.insist',
    'without insist, every call of a capability that is not deterministic is made',
    twice({ ttl: '1h' }),
    {
      script,
      expected: { ...both, calls: { x: 2 } },
    },
  ),
  unhappy(
    'cache.insist',
    'anything but true or false is refused',
    twice({ ttl: '1h', insist: 'yes' }),
    refused('type_invalid', '/steps/0/cache/insist'),
  ),
];
