/** The server process: the API and maintenance, until SIGTERM or SIGINT. A second signal stops it immediately. */
import { fileURLToPath } from 'node:url';
import { createApp } from './api/app.ts';
import { listen } from './api/listen.ts';
import { readConfig } from './config.ts';
import { createServerRuntime } from './processes/server-runtime.ts';
import { createLogger, publicUrlOf } from './processes/shared-context.ts';
import { startTelemetry } from './telemetry/start-telemetry.ts';
import { prepareDatabase } from './use-cases/setup.ts';

const config = readConfig(process.env);
const telemetry = await startTelemetry(config, 'server');
const logger = createLogger(config, 'server', telemetry.logFields);

if (config.API_KEY_FILE !== undefined) {
  await prepareDatabase(config.DATABASE_URL, { apiKeyFile: config.API_KEY_FILE });
}
let url = publicUrlOf(config);
const runtime = await createServerRuntime(config, { logger, publicUrl: () => url, telemetry });
// The console lies beside the sources, and beside the compiled output.
const built = import.meta.url.endsWith('.ts') ? '../dist/console' : '../console';
const consoleFolder = fileURLToPath(new URL(built, import.meta.url));
const app = createApp({ ctx: runtime.ctx, consoleFolder });
const server = await listen(app, {
  host: config.HOST,
  port: config.PORT,
  headersTimeoutMs: config.HEADERS_TIMEOUT_MS,
  graceMs: config.SHUTDOWN_GRACE_MS,
});
url = publicUrlOf(config, server.url);
await telemetry.listen(logger);
logger.info({ url }, 'server is ready');

let isStopping = false;
async function stop(): Promise<void> {
  if (isStopping) process.exit(1);
  isStopping = true;
  logger.info('stopping: open requests end first');
  await server.close();
  await runtime.close();
  await telemetry.close();
}
process.on('SIGTERM', () => void stop());
process.on('SIGINT', () => void stop());
