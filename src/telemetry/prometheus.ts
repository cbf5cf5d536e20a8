/** The metrics of one process in a registry of its own, in the form that Prometheus reads. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import {
  type MetricName,
  metricPrefix,
  metricTable,
  mostNames,
  openLabels,
} from '../core/telemetry/metric-table.ts';
import type { Metrics } from '../core/telemetry/metrics.ts';
import { createNameLimit } from '../core/telemetry/name-limit.ts';

export interface Prometheus extends Metrics {
  /** All of it as text, after what is to be refreshed was. */
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

/** A gauge without labels has a value from the first; one that another process exports must have none here. */
function clear(gauge: Gauge, name: MetricName): void {
  gauge.reset();
  if (metricTable[name].labels.length === 0) gauge.remove();
}

function createWithin(): (name: MetricName, labels: Labels) => Labels {
  const limits = new Map([...openLabels].map((label) => [label, createNameLimit(mostNames)]));
  const open = (name: MetricName) => metricTable[name].labels.filter((label) => limits.has(label));
  const openOf = new Map(names.map((name) => [name, open(name)]));
  return (name, labels) => {
    const limited = { ...labels };
    for (const label of openOf.get(name) ?? []) {
      limited[label] = limits.get(label)?.(labels[label] ?? '') ?? 'other';
    }
    return limited;
  };
}

/** Adds up what has equal labels: open names beyond the limit do. */
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

/** @param onFault hears of a refresh that failed */
export function createPrometheus(onFault: (error: unknown) => void): Prometheus {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const collectors = new Map(names.map((name) => [name, createCollector(registry, name)]));
  const of = <Kind extends Collector>(name: MetricName): Kind => collectors.get(name) as Kind;
  const within = createWithin();
  const refreshes: (() => void | Promise<void>)[] = [];
  for (const name of names) if ('of' in metricTable[name]) clear(of<Gauge>(name), name);
  return {
    isOn: true,
    add: (name, labels, by = 1) => of<Counter>(name).inc(within(name, labels), by),
    observe: (name, labels, value) => of<Histogram>(name).observe(within(name, labels), value),
    set: (name, labels, value) => of<Gauge>(name).set(within(name, labels), value),
    replace: (name, samples) => {
      const gauge = of<Gauge>(name);
      clear(gauge, name);
      const limited = samples.map(({ labels, value }) => ({ labels: within(name, labels), value }));
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
