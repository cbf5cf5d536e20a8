/**
 * Telemetry of one process, by its configuration: metrics on a separate port, spans to a collector. The metrics always
 * include the delay of the event loop, which every request in a busy process has to wait for.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { type Metrics, noMetrics, type Telemetry } from '@capstan/core/telemetry/telemetry';
import { DiagLogLevel, diag } from '@opentelemetry/api';
import {
  createPrometheus,
  findFreePort,
  type MetricsServer,
  type Prometheus,
  readCoreText,
  serveMetrics,
} from './metrics.ts';
import { readResource, type SpanExport, startSpanExport } from './span-export.ts';
import { createTracing, toLogFields } from './tracing.ts';

/** @returns stops the measurement */
function watchEventLoop(metrics: Metrics): () => void {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  const quantiles = { '0.5': 50, '0.99': 99, '1': 100 };
  metrics.onScrape(() => {
    for (const [quantile, percent] of Object.entries(quantiles)) {
      const ns = delay.count === 0 ? 0 : delay.percentile(percent);
      metrics.set('event_loop_delay_seconds', { quantile }, ns / 1e9);
    }
    delay.reset();
  });
  return () => void delay.disable();
}

interface TelemetrySettings {
  readonly METRICS_PORT?: number | undefined;
  readonly METRICS_HOST?: string | undefined;
  /** Host of the API, and of the metrics unless METRICS_HOST is set. */
  readonly HOST: string;
  readonly OTEL_EXPORTER_OTLP_ENDPOINT?: string | undefined;
  readonly OTEL_SERVICE_NAME?: string | undefined;
  readonly OTEL_RESOURCE_ATTRIBUTES?: string | undefined;
}

/** The log methods that telemetry uses. */
interface TelemetryLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

interface RunningTelemetry extends Telemetry {
  /** Fields of each log line. */
  readonly logFields: () => Record<string, string>;
  /** Starts to serve metrics and to log faults of the export. @throws Error that names METRICS_PORT */
  listen(log: TelemetryLog): Promise<void>;
  /** The port on which Temporal's Core shall serve its own metrics; null: none. */
  corePort(): Promise<number | null>;
  close(): Promise<void>;
}

async function startSpans(
  settings: TelemetrySettings,
  name: 'server' | 'worker',
): Promise<SpanExport | null> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SERVICE_NAME: service } = settings;
  if (endpoint === undefined || endpoint === '') return null;
  return startSpanExport({
    'service.name': `capstan-${name}`,
    'service.instance.id': String(process.pid),
    ...readResource(settings.OTEL_RESOURCE_ATTRIBUTES ?? ''),
    ...(service === undefined || service === '' ? {} : { 'service.name': service }),
  });
}

/** Logs warnings and errors of the SDK, mostly an unreachable collector. They may contain addresses, never secrets. */
function listenToSdk(log: TelemetryLog): void {
  const warn = (message: string): void => log.warn({ message }, 'spans were not told');
  const silent = (): void => undefined;
  const logger = { error: warn, warn, info: silent, debug: silent, verbose: silent };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
}

/** A worker's page ends with Core's metrics, and omits them while Core does not answer. */
async function textOf(prometheus: Prometheus, corePort: number | null): Promise<string> {
  const [own, core] = await Promise.all([
    prometheus.text(),
    corePort === null ? '' : readCoreText(corePort).catch(() => ''),
  ]);
  return core === '' ? own : `${own}\n${core}`;
}

export async function startTelemetry(
  settings: TelemetrySettings,
  name: 'server' | 'worker',
): Promise<RunningTelemetry> {
  const { METRICS_PORT: port, METRICS_HOST: host = settings.HOST } = settings;
  const spans = await startSpans(settings, name);
  const tracing = createTracing(spans);
  let log: TelemetryLog | null = null;
  const onFault = (err: unknown): void => log?.warn({ err }, 'some metrics were not read');
  const prometheus = port === undefined ? null : createPrometheus(onFault);
  const stopWatching = prometheus === null ? () => undefined : watchEventLoop(prometheus);
  const metrics: Metrics = prometheus ?? noMetrics;
  let core: number | null = null;
  let server: MetricsServer | null = null;
  return {
    metrics,
    tracing,
    logFields: () => toLogFields(tracing),
    corePort: async () => {
      if (prometheus !== null) core = await findFreePort();
      return core;
    },
    listen: async (given) => {
      log = given;
      if (spans !== null) listenToSdk(given);
      if (prometheus === null || port === undefined) return;
      const { contentType } = prometheus;
      server = await serveMetrics({ contentType, text: () => textOf(prometheus, core) }, { host, port });
      given.info({ url: server.url }, 'metrics are served');
    },
    close: async () => {
      stopWatching();
      await Promise.all([server?.close(), spans?.close()]);
    },
  };
}
