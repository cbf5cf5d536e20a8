/** The metrics and the alerts, from the tables that they are made from. */
import { metricGroups, metricPrefix } from '@capstan/core/telemetry/metric-table';
import { code, createPage, formatTable, type Page } from '../page.ts';
import { type Alert, alerts, toExpression } from './alerts.ts';

interface Row {
  readonly type: string;
  readonly help: string;
  readonly labels: readonly string[];
  readonly of?: string;
}

function formatGroup([title, rows]: [string, Readonly<Record<string, Row>>]): string {
  const cells = Object.entries(rows).map(([name, { type, help, labels, of }]) => [
    code(metricPrefix + name),
    type,
    labels.map(code).join(', '),
    of === 'shared' ? `${help} †` : help,
  ]);
  return `## ${title}\n\n${formatTable(['Metric', 'Type', 'Labels', 'Meaning'], cells)}`;
}

export function createMetricsPage(): Page {
  return createPage('docs/reference/metrics.md', {
    title: 'Metrics',
    source: 'packages/core/src/telemetry/metric-table.ts',
    sections: [
      '`GET /metrics` on `METRICS_PORT` returns these metrics. It also returns Node’s metrics of the process (`process_…`, `nodejs_…`). A worker adds those of Temporal’s Core (`temporal_…`). [Telemetry](../telemetry.md) explains how to read them.',
      '† counted in the database: only the server that runs maintenance reports it, so a sum over all processes is right.',
      ...Object.entries(metricGroups).map(formatGroup),
    ],
  });
}

function formatAlert(alert: Alert): string {
  const { name, severity, means, look, act } = alert;
  const lasting = alert.for === undefined ? '' : `, for ${alert.for}`;
  return [
    `## ${name}`,
    `${severity}${lasting}: ${code(toExpression(alert))}`,
    `**What it means.** ${means}`,
    `**Where to look.** ${look}`,
    `**What to do.** ${act}`,
  ].join('\n\n');
}

export function createAlertsPage(): Page {
  return createPage('docs/reference/alerts.md', {
    title: 'Alerts',
    source: 'scripts/docs/telemetry/alerts.ts',
    sections: [
      'The rules are in [capstan.rules.yml](../../deploy/telemetry/capstan.rules.yml). `page`: an operator should look now; `ticket`: today.',
      ...alerts.map(formatAlert),
    ],
  });
}
