/** The search attributes of a namespace, as an operator of Temporal sees them and as everybody else finds out. */
import type { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  addMissingSearchAttributes,
  findMissingSearchAttributes,
} from '../../src/clients/temporal/search-attributes.ts';
import { connectTestEnvironment } from '../support/temporal.ts';
import { waitFor } from '../support/wait.ts';

const empty = `empty-${process.pid}-${Date.now()}`;
const all = ['PipelineName', 'PipelineVersion', 'ProjectId', 'RunPhase', 'AwaitingHuman'];

let environment: TestWorkflowEnvironment;
/** Of a key that is no operator's. */
let lesser: Connection;

function refuse(): Promise<never> {
  const status = { code: 7, details: 'Request unauthorized', metadata: {} };
  return Promise.reject(Object.assign(new Error('7 PERMISSION_DENIED: Request unauthorized'), status));
}

beforeAll(async () => {
  environment = await connectTestEnvironment();
  const connection = environment.connection as Connection;
  lesser = Object.create(connection, {
    operatorService: { value: { listSearchAttributes: refuse, addSearchAttributes: refuse } },
  });
  await connection.workflowService.registerNamespace({
    namespace: empty,
    workflowExecutionRetentionPeriod: msToTs('1 day'),
  });
});
afterAll(() => environment?.teardown());

test.each(['an operator', 'anybody else'])('%s learns what is registered and what is not', async (who) => {
  const connection = who === 'an operator' ? (environment.connection as Connection) : lesser;
  expect(await findMissingSearchAttributes(connection, 'default')).toEqual([]);
  const missing = await waitFor('the namespace to be known everywhere', () =>
    findMissingSearchAttributes(connection, empty).catch(() => null),
  );
  expect(missing).toEqual(all);
});

test('a caller who may register none receives the missing ones', async () => {
  await waitFor('the namespace to be known everywhere', () =>
    findMissingSearchAttributes(lesser, empty).catch(() => null),
  );
  await expect(addMissingSearchAttributes(lesser, empty)).rejects.toThrow(
    `register PipelineName=Keyword, PipelineVersion=Keyword, ProjectId=Keyword, RunPhase=Keyword, AwaitingHuman=Bool in namespace ${empty}`,
  );
});
