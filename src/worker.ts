/**
 * The worker process: runs workflows and activities until SIGTERM or SIGINT, then gives calls SHUTDOWN_GRACE_MS to end.
 * A second signal stops it immediately.
 */
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { DefaultLogger, NativeConnection, Runtime } from '@temporalio/worker';
import { createActivities } from './activities/create-activities.ts';
import { heartbeatIntervalMs, readConfig } from './config.ts';
import { loadWorkflowBundle } from './processes/bundle-workflows.ts';
import { createLogger, readDataConverter } from './processes/shared-context.ts';
import { createWorkerRuntime } from './processes/worker-runtime.ts';
import { EngineWorker } from './processes/workflow-threads.ts';
import { startTelemetry } from './telemetry/start-telemetry.ts';

/** Time from the end of the grace period, when calls are aborted, to the end of the process. */
const forceAfterMs = 5_000;

/** Temporal's Core serves its metrics on a separate port. */
function coreMetrics(port: number) {
  const prometheus = { bindAddress: `127.0.0.1:${port}`, useSecondsForDurations: true };
  return { metrics: { prometheus } };
}

const config = readConfig(process.env);
const telemetry = await startTelemetry(config, 'worker');
const logger = createLogger(config, 'worker', telemetry.logFields);

const temporalLogger = new DefaultLogger('INFO', ({ level, message, meta }) => {
  const write = level === 'ERROR' ? 'error' : level === 'WARN' ? 'warn' : 'debug';
  const { fault, error = fault, ...rest } = meta ?? {};
  logger[write]({ ...rest, err: error }, message);
});
const corePort = await telemetry.corePort();
Runtime.install({
  logger: temporalLogger,
  shutdownSignals: [],
  ...(corePort === null ? {} : { telemetryOptions: coreMetrics(corePort) }),
});

// Loaded before any connection opens: bundling leaves this thread no time to serve one.
const bundle = await loadWorkflowBundle(config.WORKFLOW_BUNDLE, temporalLogger);

const dataConverter = readDataConverter(config);
const { connectionOptions, namespace } = loadClientConnectConfig();
const connection = await NativeConnection.connect(connectionOptions);
const runtime = await createWorkerRuntime(config, logger, telemetry);
const worker = await EngineWorker.create({
  connection,
  ...(namespace === undefined ? {} : { namespace }),
  taskQueue: config.TASK_QUEUE,
  dataConverter,
  workflowBundle: { code: bundle.code },
  activities: createActivities(runtime.ctx, { heartbeatIntervalMs: heartbeatIntervalMs(config) }),
  maxConcurrentActivityTaskExecutions: config.ACTIVITY_SLOTS,
  maxHeartbeatThrottleInterval: heartbeatIntervalMs(config),
  defaultHeartbeatThrottleInterval: heartbeatIntervalMs(config),
  shutdownGraceTime: config.SHUTDOWN_GRACE_MS,
  shutdownForceTime: config.SHUTDOWN_GRACE_MS + forceAfterMs,
});

function stop(): void {
  if (worker.getState() !== 'RUNNING') process.exit(1);
  logger.info('stopping: waiting for calls to end');
  runtime.retire(config.SHUTDOWN_GRACE_MS); // when calls are aborted
  worker.shutdown();
}
process.on('SIGTERM', stop);
process.on('SIGINT', stop);

await telemetry.listen(logger);
logger.info({ task_queue: config.TASK_QUEUE, workflow_bundle: bundle.file }, 'worker is ready');
try {
  await worker.run();
} finally {
  await runtime.close();
  await connection.close();
  await telemetry.close();
}
