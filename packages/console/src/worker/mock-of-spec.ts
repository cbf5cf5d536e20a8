import type { MockCapability } from '@capstan/core/mock-run/mocks';
import { createExample } from '../form/schema-model.ts';
import type { LiveSpec } from './messages.ts';

/** A capability without a mock returns an example of its live schema, at the price of its live instances. */
export function mockOfSpec({ input, output, instances }: LiveSpec): MockCapability {
  const offered = instances.length === 0 ? {} : { instances };
  return { input, output, ...offered, replies: [{ delay: '1s', output: createExample(output, output) }] };
}
