/** A collector of spans: OTLP over HTTP, as protobuf or JSON. It records them. */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import protobuf from 'protobufjs';

/** The fields of opentelemetry-proto v1 that tests read, by their numbers. */
const messages = protobuf.parse(`
  syntax = "proto3";
  message Request { repeated ResourceSpans resource_spans = 1; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
  message Resource { repeated KeyValue attributes = 1; }
  message ScopeSpans { repeated Span spans = 2; }
  message Span {
    bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; bytes parent_span_id = 4; string name = 5; int32 kind = 6;
    fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8;
    repeated KeyValue attributes = 9; Status status = 15;
  }
  message Status { string message = 2; int32 code = 3; }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message AnyValue {
    oneof value {
      string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4;
      ArrayValue array_value = 5;
    }
  }
  message ArrayValue { repeated AnyValue values = 1; }
`).root;

export interface CollectedSpan {
  readonly service: string;
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty: the root span of its trace. */
  readonly parentId: string;
  /** `tracestate`; empty: none. */
  readonly state: string;
  /** OTLP's numbers: 1 internal, 2 server, 3 client. */
  readonly kind: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly durationMs: number;
  readonly hasFailed: boolean;
}

export interface SpanCollector {
  readonly url: string;
  readonly spans: readonly CollectedSpan[];
  close(): Promise<void>;
}

interface WireValue {
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly intValue?: string | number;
  readonly doubleValue?: number;
  readonly arrayValue?: { readonly values?: readonly WireValue[] };
}

interface WireAttribute {
  readonly key: string;
  readonly value: WireValue;
}

interface WireSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly name: string;
  readonly kind?: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes?: readonly WireAttribute[];
  readonly status?: { readonly code?: number };
}

interface WireRequest {
  readonly resourceSpans?: readonly {
    readonly resource?: { readonly attributes?: readonly WireAttribute[] };
    readonly scopeSpans?: readonly { readonly spans?: readonly WireSpan[] }[];
  }[];
}

function toValue({ stringValue, boolValue, intValue, doubleValue, arrayValue }: WireValue): unknown {
  if (arrayValue !== undefined) return (arrayValue.values ?? []).map(toValue);
  return stringValue ?? boolValue ?? doubleValue ?? Number(intValue);
}

function toRecord(attributes: readonly WireAttribute[] = []): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, toValue(value)]));
}

/** Ids are bytes in protobuf, which its JSON writes as base64; OTLP's JSON has them in hexadecimal. */
function readProtobuf(bytes: Buffer): WireRequest {
  const type = messages.lookupType('Request');
  const plain = type.toObject(type.decode(bytes), { longs: String, bytes: String });
  const ids = /"(traceId|spanId|parentSpanId)":"([^"]*)"/g;
  const text = JSON.stringify(plain).replace(
    ids,
    (_, name, base64) => `"${name}":"${Buffer.from(base64, 'base64').toString('hex')}"`,
  );
  return JSON.parse(text);
}

function toSpans({ resourceSpans = [] }: WireRequest): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans = [] }) =>
    scopeSpans.flatMap(({ spans = [] }) =>
      spans.map((span) => ({
        service: String(toRecord(resource?.attributes)['service.name']),
        name: span.name,
        traceId: span.traceId,
        spanId: span.spanId,
        parentId: span.parentSpanId ?? '',
        state: span.traceState ?? '',
        kind: span.kind ?? 0,
        attributes: toRecord(span.attributes),
        durationMs: Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e6,
        hasFailed: span.status?.code === 2,
      })),
    ),
  );
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

export async function startSpanCollector(): Promise<SpanCollector> {
  const spans: CollectedSpan[] = [];
  const server = createServer(async (request, response) => {
    const body = await readBody(request);
    const isJson = request.headers['content-type']?.includes('json') === true;
    spans.push(...toSpans(isJson ? JSON.parse(body.toString()) : readProtobuf(body)));
    response.writeHead(200, { 'content-type': isJson ? 'application/json' : 'application/x-protobuf' });
    response.end(isJson ? '{}' : '');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
