import { expect, test } from 'vitest';
import { describeWorker } from '../../src/dev/service-processes.ts';
import { serveMetrics } from '../../src/telemetry/metrics.ts';
import { startTelemetry } from '../../src/telemetry/start-telemetry.ts';

const page = { contentType: 'text/plain; version=0.0.4', text: async () => 'capstan_up 1\n' };

test('a page of metrics and nothing else', async () => {
  const server = await serveMetrics(page, { host: '127.0.0.1', port: 0 });
  const answers = await Promise.all(
    [fetch(server.url), fetch(`${server.url}/more`), fetch(server.url, { method: 'POST' })].map(
      async (answer) => [(await answer).status, await (await answer).text()],
    ),
  );
  expect(answers).toEqual([
    [200, 'capstan_up 1\n'],
    [404, 'there is GET /metrics\n'],
    [404, 'there is GET /metrics\n'],
  ]);
  await server.close();
});

test('a port in use is an error that names it', async () => {
  const server = await serveMetrics(page, { host: '127.0.0.1', port: 0 });
  const port = Number(new URL(server.url).port);
  const telemetry = await startTelemetry({ HOST: '127.0.0.1', METRICS_PORT: port }, 'server');
  const log = { info: () => undefined, warn: () => undefined };
  await expect(telemetry.listen(log)).rejects.toThrow(
    `METRICS_PORT: 127.0.0.1:${port} cannot be opened (EADDRINUSE)`,
  );
  await telemetry.close();
  await server.close();
});

test('unset, nothing is counted, served or traced', async () => {
  const telemetry = await startTelemetry({ HOST: '127.0.0.1' }, 'worker');
  expect(await telemetry.corePort()).toBeNull();
  expect(telemetry.tracing.isOn).toBe(false);
  expect(telemetry.logFields()).toEqual({});
  const lines: string[] = [];
  await telemetry.listen({ info: (_, text) => lines.push(text), warn: () => undefined });
  expect(lines).toEqual([]);
  await telemetry.close();
});

test('the two processes of the embedded stack have ports of their own', () => {
  const environment = { DATABASE_URL: 'postgres://127.0.0.1/capstan', METRICS_PORT: '9464' };
  expect(describeWorker({ dataDir: '/tmp', environment }).env).toMatchObject({ METRICS_PORT: '9465' });
  const any = describeWorker({ dataDir: '/tmp', environment: { ...environment, METRICS_PORT: '0' } });
  expect(any.env).toMatchObject({ METRICS_PORT: '0' });
});
