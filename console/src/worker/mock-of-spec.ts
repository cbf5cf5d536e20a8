import type { MockCapability } from '../../../src/mock-run/mocks.ts';
import { createValue } from '../form/schema-model.ts';
import type { LiveSpec } from './messages.ts';

/** A capability that nobody mocks answers what its live schema asks for, at the price of those that are there. */
export function mockOfSpec({ input, output, instances }: LiveSpec): MockCapability {
  const offered = instances.length === 0 ? {} : { instances };
  return { input, output, ...offered, replies: [{ delay: '1s', output: createValue(output, output) }] };
}
