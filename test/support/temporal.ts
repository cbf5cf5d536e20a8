/** The Temporal server of the test run, as Temporal's own testing library holds it. */
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { inject } from 'vitest';

let isQuiet = false;

/** Before anything native is used: workers and replays tell of errors alone. A process has one runtime. */
export function quietRuntime(): void {
  if (!isQuiet) Runtime.install({ logger: new DefaultLogger('ERROR') });
  isQuiet = true;
}

/** Whoever connects tears down. */
export function connectTestEnvironment(): Promise<TestWorkflowEnvironment> {
  quietRuntime();
  return TestWorkflowEnvironment.createFromExistingServer({ address: inject('temporalAddress') });
}
