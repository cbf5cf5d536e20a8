/** A run with mocks, in virtual time. A capability that nobody mocks answers what its live schema asks for. */
import type { JsonObject } from '../../../src/contracts/primitives.ts';
import { findDifferences } from '../../../src/mock-run/check-expectation.ts';
import { preparePipeline } from '../../../src/mock-run/prepare-run.ts';
import { readMocks } from '../../../src/mock-run/read-mocks.ts';
import { runLocally } from '../../../src/mock-run/run-locally.ts';
import type { LiveSpecs, Tried } from './messages.ts';
import { mockOfSpec } from './mock-of-spec.ts';

export interface TryRequest {
  readonly text: string;
  readonly mocks: string;
  readonly job: JsonObject;
  readonly specs: LiveSpecs;
}

/** A task of its own, after all microtasks: browsers have no `setImmediate`. */
function settleByMessage(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.addEventListener('message', () => {
      port1.close();
      resolve();
    });
    port1.start();
    port2.postMessage(null);
  });
}

function mockSpecs(specs: LiveSpecs) {
  return Object.fromEntries(Object.entries(specs).map(([name, spec]) => [name, mockOfSpec(spec)]));
}

function refuse(problems: readonly string[]): Tried {
  return { result: null, problems, differences: null };
}

function describe({
  line,
  message,
}: {
  readonly line?: number | undefined;
  readonly message: string;
}): string {
  return line === undefined ? message : `line ${line}: ${message}`;
}

export async function tryText({ text, mocks: mocksText, job, specs }: TryRequest): Promise<Tried> {
  const { mocks, findings } = readMocks(mocksText, null);
  if (mocks === null) return refuse(findings.map((one) => `mocks, ${describe(one)}`));
  const whole = { ...mocks, capabilities: { ...mockSpecs(specs), ...mocks.capabilities } };
  const { definition, findings: found } = preparePipeline({ text, type: 'application/yaml' }, whole, []);
  if (definition === null) {
    return refuse(found.filter(({ severity }) => severity === 'error').map(describe));
  }
  const given = Object.keys(job).length > 0 ? job : (mocks.job ?? {});
  const result = await runLocally(definition, given, whole, { settle: settleByMessage });
  const differences = mocks.expect === undefined ? null : findDifferences(mocks.expect, result);
  return { result, problems: [], differences };
}
