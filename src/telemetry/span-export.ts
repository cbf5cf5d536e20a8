/**
 * OpenTelemetry's SDK, loaded only if spans are exported: it takes a tenth of a second and 17 MiB. It reads its own
 * variables (OTEL_EXPORTER_OTLP_…, OTEL_BSP_…, OTEL_TRACES_SAMPLER).
 */
import type { Tracer } from '@opentelemetry/api';
import { ownResource } from '../library-internals.ts';
import { createSpanIds, type SpanSource } from './tracing.ts';

export interface SpanExport extends SpanSource {
  /** Exports the remaining spans, for at most `closeMs`. */
  close(): Promise<void>;
}

/** Parses `key=value,key=value`, percent-encoded as in OTEL_RESOURCE_ATTRIBUTES. */
export function readResource(text: string): Record<string, string> {
  const pairs = text.split(',').map((pair) => pair.split('='));
  const sound = pairs.filter(([name = '', value]) => name.trim() !== '' && value !== undefined);
  return Object.fromEntries(sound.map(([name = '', value = '']) => [name.trim(), decode(value.trim())]));
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const closeMs = 3_000;

/** @param attributes of the process, including its `service.name` */
export async function startSpanExport(attributes: Readonly<Record<string, string>>): Promise<SpanExport> {
  const [{ NodeTracerProvider, BatchSpanProcessor }, { OTLPTraceExporter }] = await Promise.all([
    import('@opentelemetry/sdk-trace-node'),
    import('@opentelemetry/exporter-trace-otlp-proto'),
  ]);
  const ids = createSpanIds();
  const provider = new NodeTracerProvider({
    resource: ownResource(attributes),
    idGenerator: ids,
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  const tracer: Tracer = provider.getTracer('capstan');
  const late = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, closeMs).unref());
  return { tracer, ids, close: () => Promise.race([provider.shutdown().catch(() => undefined), late()]) };
}
