/**
 * The metrics of one process in its own registry, in the Prometheus format, and the page that serves them. A worker's
 * page ends with the metrics of Temporal's Core.
 */

import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import {
  createNameLimit,
  type MetricName,
  metricPrefix,
  metricTable,
  mostNames,
  type NameLimit,
  openLabels,
} from '@capstan/core/telemetry/metric-table';
import type { Metrics } from '@capstan/core/telemetry/telemetry';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

export interface Prometheus extends Metrics {
  /** The whole page as text, after all refreshes have run. */
  text(): Promise<string>;
  readonly contentType: string;
}

type Collector = Counter | Gauge | Histogram;
type Labels = Readonly<Record<string, string>>;

const names = Object.keys(metricTable) as MetricName[];

function createCollector(registry: Registry, name: MetricName): Collector {
  const row = metricTable[name];
  const shape = {
    name: `${metricPrefix}${name}`,
    help: row.help,
    labelNames: [...row.labels] as string[],
    registers: [registry],
  };
  switch (row.type) {
    case 'counter':
      return new Counter(shape);
    case 'gauge':
      return new Gauge(shape);
    case 'histogram':
      return new Histogram({ ...shape, buckets: [...row.buckets] });
  }
}

/** A gauge without labels starts with a value; one that another process exports must have none here. */
function clear(gauge: Gauge, name: MetricName): void {
  gauge.reset();
  if (metricTable[name].labels.length === 0) gauge.remove();
}

interface NameLimits {
  /** @param round names used in the same round do not displace each other */
  within(name: MetricName, labels: Labels, round: object): Labels;
  /** Uses the known names first: they keep their slots before new names get one. */
  keepKnown(name: MetricName, all: readonly Labels[], round: object): void;
}

function createLimits(collectors: ReadonlyMap<MetricName, Collector>): NameLimits {
  const open = [...openLabels];
  const limits = new Map<string, NameLimit>();
  for (const label of open) {
    const having = names.filter((name) => (metricTable[name].labels as readonly string[]).includes(label));
    const endSeries = (ended: string): void => {
      for (const name of having)
        void foldSeries(collectors.get(name) as Collector, label, {
          ended,
          isBack: () => limits.get(label)?.has(ended) === true,
        });
    };
    limits.set(label, createNameLimit(mostNames, endSeries));
  }
  const openOf = new Map(
    names.map((name) => [name, metricTable[name].labels.filter((label) => limits.has(label))]),
  );
  return {
    within: (name, labels, round) => {
      const limited = { ...labels };
      for (const label of openOf.get(name) ?? [])
        limited[label] = limits.get(label)?.use(labels[label] ?? '', round) ?? 'other';
      return limited;
    },
    keepKnown: (name, all, round) => {
      for (const label of openOf.get(name) ?? []) {
        const limit = limits.get(label);
        for (const { [label]: value = '' } of all) if (limit?.has(value)) limit.use(value, round);
      }
    },
  };
}

interface EndedName {
  readonly ended: string;
  readonly isBack: () => boolean;
}

/** Ends the series of a name. A counter's value moves to `other`, so sums do not fall. */
async function foldSeries(collector: Collector, label: string, { ended, isBack }: EndedName): Promise<void> {
  const { values } = await collector.get();
  if (isBack()) return;
  const seen = new Set<string>();
  for (const { labels, value } of values) {
    const { le: _, ...own } = labels as Record<string, string>;
    if (own[label] !== ended) continue;
    const key = JSON.stringify(own);
    if (seen.has(key)) continue;
    seen.add(key);
    collector.remove(own);
    if (collector instanceof Counter) collector.inc({ ...own, [label]: 'other' }, value);
  }
}

/** Adds up samples with equal labels, as open names beyond the limit have. */
function sumUp(samples: readonly { readonly labels: Labels; readonly value: number }[]) {
  const sums = new Map<string, { labels: Labels; value: number }>();
  for (const { labels, value } of samples) {
    const key = JSON.stringify(labels);
    const known = sums.get(key);
    if (known === undefined) sums.set(key, { labels, value });
    else known.value += value;
  }
  return sums.values();
}

/** @param onFault is called with the error of a failed refresh */
export function createPrometheus(onFault: (error: unknown) => void): Prometheus {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const collectors = new Map(names.map((name) => [name, createCollector(registry, name)]));
  const of = <Kind extends Collector>(name: MetricName): Kind => collectors.get(name) as Kind;
  const { within, keepKnown } = createLimits(collectors);
  const refreshes: (() => void | Promise<void>)[] = [];
  for (const name of names) if ('of' in metricTable[name]) clear(of<Gauge>(name), name);
  return {
    isOn: true,
    add: (name, labels, by = 1) => of<Counter>(name).inc(within(name, labels, {}), by),
    observe: (name, labels, value) => of<Histogram>(name).observe(within(name, labels, {}), value),
    set: (name, labels, value) => of<Gauge>(name).set(within(name, labels, {}), value),
    replace: (name, samples) => {
      const gauge = of<Gauge>(name);
      clear(gauge, name);
      const round = {};
      keepKnown(
        name,
        samples.map(({ labels }) => labels),
        round,
      );
      const limited = samples.map(({ labels, value }) => ({ labels: within(name, labels, round), value }));
      for (const { labels, value } of sumUp(limited)) gauge.set(labels, value);
    },
    onScrape: (refresh) => void refreshes.push(refresh),
    text: async () => {
      await Promise.all(refreshes.map(async (refresh) => refresh()).map((done) => done.catch(onFault)));
      return registry.metrics();
    },
    contentType: registry.contentType,
  };
}

// Serves `GET /metrics` on a separate port: a scraper needs no access to the API, and access to the API grants none to
// the metrics.

export interface MetricsServer {
  /** The address that Prometheus scrapes. */
  readonly url: string;
  close(): Promise<void>;
}

interface MetricsPage {
  readonly contentType: string;
  text(): Promise<string>;
}

function open(server: Server, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) =>
      reject(new Error(`METRICS_PORT: ${host}:${port} cannot be opened (${cause.code})`, { cause })),
    );
    server.listen(port, host, () => resolve(server.address() as AddressInfo));
  });
}

/** @throws Error that names METRICS_PORT if the port cannot be opened */
export async function serveMetrics(
  page: MetricsPage,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<MetricsServer> {
  const server = createServer((request, response) => {
    if (request.url !== '/metrics' || request.method !== 'GET') {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('there is GET /metrics\n');
      return;
    }
    page.text().then(
      (text) => response.writeHead(200, { 'content-type': page.contentType }).end(text),
      () => response.writeHead(500, { 'content-type': 'text/plain' }).end('the metrics cannot be read\n'),
    );
  });
  const { port: opened } = await open(server, host, port);
  const name = host.includes(':') ? `[${host}]` : host;
  return {
    url: `http://${name}:${opened}/metrics`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

// Temporal's Core serves its metrics on a separate port. They are fetched from there and appended to ours, so that a
// worker is one target.

const withinMs = 2_000;

/** Finds a loopback port that was free a moment ago: Core cannot choose a port and report it. */
export function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createTcpServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

/** @throws if Core does not answer */
export async function readCoreText(port: number): Promise<string> {
  const signal = AbortSignal.timeout(withinMs);
  const response = await fetch(`http://127.0.0.1:${port}/metrics`, { signal });
  return response.text();
}
