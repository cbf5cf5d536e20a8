import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CostSummary } from '@capstan/core/contracts/money';
import { expect, it, onTestFinished, vi } from 'vitest';
import { createApiClient } from '../../../src/cli/client/api-client.ts';
import { UnreachableError } from '../../../src/cli/errors.ts';

async function aSilentServer(): Promise<string> {
  const server = createServer(() => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it('waits at most 4 s for costs, so that they delay no decision', async () => {
  const url = await aSilentServer();
  const client = createApiClient({ url, key: 'a-key', project: 'a-project' });
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  const limit = vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => timeout(10));
  onTestFinished(() => limit.mockRestore());
  const asked = client.get('/v1/costs', CostSummary, { period: 'day' });
  await expect(asked).rejects.toThrow(new UnreachableError(`${url} did not answer within 4s`));
  expect(limit.mock.calls).toEqual([[4_000]]);
});
