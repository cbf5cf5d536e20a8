import { expect, it } from 'vitest';
import type { StepDefinition } from '../../../src/contracts/pipeline.ts';
import { checkCache } from '../../../src/definition/checks/check-availability.ts';
import { anyType } from '../../../src/schema-types/value-type.ts';

/** @param said by each spec that is known */
function check(step: Partial<StepDefinition>, said: readonly boolean[], defaults = {}) {
  const definition = {
    pipeline: 'p',
    version: '1',
    steps: [{ id: 'a', capability: 'x', ...step }],
    defaults,
  };
  const specsOf = () =>
    said.map((isDeterministic) => ({
      digest: 'd',
      input: anyType,
      output: anyType,
      findInputFaults: () => [],
      isDeterministic,
    }));
  return checkCache(definition, { specsOf }).map(({ code, pointer }) => `${code} ${pointer}`);
}

const cache = { ttl: '1h' };

it('reports that a result is never kept, and the remedy', () => {
  expect(check({ cache }, [false, false])).toEqual(['cache_unused /steps/0/cache']);
});

it.each([
  ['one version is deterministic', { cache }, [false, true]],
  ['the author insists', { cache: { ...cache, insist: true } }, [false]],
  ['nothing is known of the capability', { cache }, []],
  ['it is turned off', { cache: { ttl: '0s' } }, [false]],
])('finds nothing when %s', (_, step, said) => {
  expect(check(step, said)).toEqual([]);
});

it('finds nothing in the defaults: they apply only to the steps that support them', () => {
  expect(check({}, [false], { cache })).toEqual([]);
});
