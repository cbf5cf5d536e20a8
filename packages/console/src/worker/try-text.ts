/** A run with mocks, in virtual time. A capability without a mock returns an example of its live schema. */
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { Mocks } from '@capstan/core/mock-run/mocks';
import { preparePipeline } from '@capstan/core/mock-run/prepare-run';
import { readMocks } from '@capstan/core/mock-run/read-mocks';
import { findDifferences, runLocally } from '@capstan/core/mock-run/run-locally';
import type { LiveSpecs, Tried } from './messages.ts';
import { mockOfSpec } from './mock-of-spec.ts';

export interface TryRequest {
  readonly text: string;
  readonly mocks: string;
  readonly job: JsonObject;
  readonly specs: LiveSpecs;
  /** Stored pipelines that it may start. */
  readonly pipelines: readonly PipelineDefinition[];
}

/** The mocks' own pipelines come last, so they win; files are not available here. */
function pipelinesOf({ pipelines = [] }: Mocks, stored: readonly PipelineDefinition[]): PipelineDefinition[] {
  return [...stored, ...pipelines.filter((one) => typeof one !== 'string')];
}

/** A separate task, after all microtasks: browsers have no `setImmediate`. */
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

export async function tryText(request: TryRequest): Promise<Tried> {
  const { text, mocks: mocksText, job, specs } = request;
  const { mocks, findings } = readMocks(mocksText, null);
  if (mocks === null) return refuse(findings.map((one) => `mocks, ${describe(one)}`));
  const whole = { ...mocks, capabilities: { ...mockSpecs(specs), ...mocks.capabilities } };
  const pipelines = pipelinesOf(mocks, request.pipelines);
  const { definition, findings: found } = preparePipeline(
    { text, type: 'application/yaml' },
    whole,
    pipelines,
  );
  if (definition === null) {
    return refuse(found.filter(({ severity }) => severity === 'error').map(describe));
  }
  const given = Object.keys(job).length > 0 ? job : (mocks.job ?? {});
  const result = await runLocally(definition, given, whole, { pipelines, settle: settleByMessage });
  const differences = mocks.expect === undefined ? null : findDifferences(mocks.expect, result);
  return { result, problems: [], differences };
}
