/** The Temporal server of the test run, managed by Temporal's own testing library. */
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { inject } from 'vitest';

let isQuiet = false;

/** Called before any native code: workers and replays log only errors. A process has one runtime. */
export function quietRuntime(): void {
  if (!isQuiet) Runtime.install({ logger: new DefaultLogger('ERROR') });
  isQuiet = true;
}

/** The caller tears it down. */
export function connectTestEnvironment(): Promise<TestWorkflowEnvironment> {
  quietRuntime();
  return TestWorkflowEnvironment.createFromExistingServer({ address: inject('temporalAddress') });
}
