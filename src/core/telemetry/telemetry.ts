/** What a process tells of itself, to whoever listens. */
import { type Metrics, noMetrics } from './metrics.ts';
import { noTracing, type Tracing } from './tracing.ts';

export interface Telemetry {
  readonly metrics: Metrics;
  readonly tracing: Tracing;
}

export const noTelemetry: Telemetry = { metrics: noMetrics, tracing: noTracing };
