/** The worker of the bare workflows and, as another process, of those at the floor, with as many slots as Capstan's. */
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { Agent } from 'undici';
import { readConfig } from '../../src/config.ts';
import { createBareActivities } from './bare-activities.ts';
import type { Endpoints } from './capabilities.ts';

const [endpoints = ''] = process.argv.slice(2);
const config = readConfig(process.env);
Runtime.install({ shutdownSignals: [] });
const { connectionOptions, namespace = 'default' } = loadClientConnectConfig();
const connection = await NativeConnection.connect(connectionOptions);
const agent = new Agent({ connections: 512, pipelining: 1 });
const worker = await Worker.create({
  connection,
  namespace,
  taskQueue: config.TASK_QUEUE,
  workflowsPath: fileURLToPath(new URL(`./bare-workflow${extname(import.meta.url)}`, import.meta.url)),
  activities: createBareActivities(agent, JSON.parse(endpoints) as Endpoints),
  maxConcurrentActivityTaskExecutions: config.ACTIVITY_SLOTS,
});
process.on('SIGTERM', () => worker.shutdown());
try {
  await worker.run();
} finally {
  await agent.close();
  await connection.close();
}
