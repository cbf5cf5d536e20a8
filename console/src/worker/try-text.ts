/** A run with mocks, in virtual time. A capability that nobody mocks answers what its live schema asks for. */
import type { JsonObject } from '../../../src/contracts/primitives.ts';
import { preparePipeline } from '../../../src/mock-run/prepare-run.ts';
import { readMocks } from '../../../src/mock-run/read-mocks.ts';
import { runLocally } from '../../../src/mock-run/run-locally.ts';
import { createValue } from '../form/schema-model.ts';
import type { LiveSpecs, Tried } from './messages.ts';

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
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

function mockSpecs(specs: LiveSpecs) {
  return Object.fromEntries(
    Object.entries(specs).map(([name, { input, output }]) => [
      name,
      { input, output, replies: [{ delay: '1s', output: createValue(output, output) }] },
    ]),
  );
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
  if (mocks === null) return { result: null, problems: findings.map((one) => `mocks, ${describe(one)}`) };
  const whole = { ...mocks, capabilities: { ...mockSpecs(specs), ...mocks.capabilities } };
  const { definition, findings: found } = preparePipeline({ text, type: 'application/yaml' }, whole, []);
  if (definition === null) {
    return { result: null, problems: found.filter(({ severity }) => severity === 'error').map(describe) };
  }
  const given = Object.keys(job).length > 0 ? job : (mocks.job ?? {});
  return { result: await runLocally(definition, given, whole, { settle: settleByMessage }), problems: [] };
}
