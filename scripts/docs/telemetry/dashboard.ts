/** The dashboard for Grafana: a row for each group of metrics. */
import type { Page } from '../page.ts';

export interface Panel {
  readonly title: string;
  readonly unit: string;
  /** Expression and legend. */
  readonly lines: readonly (readonly [expr: string, legend: string])[];
}

interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

function quantiles(metric: string, by: string, legend: string): Panel['lines'] {
  return [0.5, 0.95].map((quantile) => [
    `histogram_quantile(${quantile}, sum by (le${by === '' ? '' : `, ${by}`}) (rate(${metric}_bucket[5m])))`,
    `p${quantile * 100} ${legend}`.trim(),
  ]);
}

export const dashboardRows: readonly Row[] = [
  {
    title: 'Runs',
    panels: [
      { title: 'Open runs', unit: 'short', lines: [['sum by (state) (capstan_runs)', '{{state}}']] },
      {
        title: 'Runs that ended, a second',
        unit: 'ops',
        lines: [['sum by (state) (rate(capstan_runs_total[5m]))', '{{state}}']],
      },
      {
        title: 'Duration of runs',
        unit: 's',
        lines: quantiles('capstan_run_duration_seconds', 'pipeline', '{{pipeline}}'),
      },
      {
        title: 'Steps that wait',
        unit: 'short',
        lines: [['sum by (reason, capability) (capstan_waiting_steps)', '{{reason}} {{capability}}']],
      },
    ],
  },
  {
    title: 'API',
    panels: [
      {
        title: 'Requests, a second',
        unit: 'reqps',
        lines: [['sum by (status) (rate(capstan_http_request_duration_seconds_count[5m]))', '{{status}}']],
      },
      {
        title: 'Time of requests',
        unit: 's',
        lines: quantiles('capstan_http_request_duration_seconds', 'route', '{{route}}'),
      },
      {
        title: 'In flight',
        unit: 'short',
        lines: [['sum by (instance) (capstan_http_requests_in_flight)', '{{instance}}']],
      },
      {
        title: 'Event loop, how late',
        unit: 's',
        lines: [['max by (instance) (capstan_event_loop_delay_seconds{quantile="0.99"})', '{{instance}}']],
      },
    ],
  },
  {
    title: 'Routing',
    panels: [
      {
        title: 'Attempts, a second',
        unit: 'ops',
        lines: [
          ['sum by (capability, price) (rate(capstan_attempts_total[5m]))', '{{capability}} {{price}}'],
        ],
      },
      {
        title: 'Attempts by outcome, a second',
        unit: 'ops',
        lines: [['sum by (outcome) (rate(capstan_attempts_total[5m]))', '{{outcome}}']],
      },
      {
        title: 'Time of attempts',
        unit: 's',
        lines: quantiles('capstan_attempt_duration_seconds', 'capability', '{{capability}}'),
      },
      {
        title: 'Waiting for a slot',
        unit: 's',
        lines: quantiles('capstan_claim_wait_seconds', 'priority', '{{priority}}'),
      },
      {
        title: 'Answers that came later, an hour',
        unit: 'short',
        lines: [
          ['sum by (outcome) (increase(capstan_later_answers_total[1h]))', '{{outcome}}'],
          ['sum(capstan_waiting_steps{reason="callback"})', 'calls that wait'],
        ],
      },
      {
        title: 'No instance to be had, a second',
        unit: 'ops',
        lines: [
          ['sum by (capability, reason) (rate(capstan_no_claim_total[5m]))', '{{capability}} {{reason}}'],
        ],
      },
      {
        title: 'Instances',
        unit: 'short',
        lines: [
          ['sum by (capability, state, price) (capstan_instances)', '{{capability}} {{state}} {{price}}'],
        ],
      },
      {
        title: 'Slots',
        unit: 'short',
        lines: [
          ['sum by (capability) (capstan_instance_slots)', '{{capability}}'],
          ['sum by (capability) (capstan_instance_slots_held)', '{{capability}} held'],
        ],
      },
      {
        title: 'Breakers that are open',
        unit: 'short',
        lines: [['sum by (capability) (capstan_breaker_open)', '{{capability}}']],
      },
    ],
  },
  {
    title: 'Money',
    panels: [
      {
        title: 'Spend, USD an hour',
        unit: 'currencyUSD',
        lines: [
          [
            'sum by (capability, certainty) (rate(capstan_spend_usd_total[5m])) * 3600',
            '{{capability}} {{certainty}}',
          ],
        ],
      },
      {
        title: 'Budgets of today',
        unit: 'currencyUSD',
        lines: [
          ['max by (scope, project_id) (capstan_budget_spent_usd)', '{{scope}} {{project_id}} spent'],
          ['max by (scope, project_id) (capstan_budget_reserved_usd)', '{{scope}} {{project_id}} reserved'],
          ['max by (scope, project_id) (capstan_budget_limit_usd)', '{{scope}} {{project_id}} limit'],
        ],
      },
      {
        title: 'Calls without money, a second',
        unit: 'ops',
        lines: [
          ['sum(rate(capstan_budget_refusals_total[5m]))', 'refused'],
          ['sum(rate(capstan_calls_stopped_total[5m]))', 'stopped'],
        ],
      },
      {
        title: 'Drift, nano-USD',
        unit: 'short',
        lines: [['sum(capstan_budget_drift_nano_usd_total)', 'corrected']],
      },
    ],
  },
  {
    title: 'Ladder',
    panels: [
      {
        title: 'Transitions of ladders, a second',
        unit: 'ops',
        lines: [
          ['sum by (level, outcome) (rate(capstan_escalations_total[5m]))', 'level {{level}} {{outcome}}'],
        ],
      },
      {
        title: 'Uses of skills, a second',
        unit: 'ops',
        lines: [['sum by (outcome) (rate(capstan_skill_uses_total[5m]))', '{{outcome}}']],
      },
      {
        title: 'Reviews',
        unit: 'short',
        lines: [['sum by (kind, state) (capstan_reviews)', '{{kind}} {{state}}']],
      },
      {
        title: 'Oldest review',
        unit: 's',
        lines: [['max by (kind) (capstan_reviews_oldest_seconds)', '{{kind}}']],
      },
      {
        title: 'Tokens of models, a second',
        unit: 'short',
        lines: [['sum by (model, type) (rate(capstan_model_tokens_total[5m]))', '{{model}} {{type}}']],
      },
    ],
  },
  {
    title: 'Engine',
    panels: [
      {
        title: 'Starts of schedules',
        unit: 'short',
        lines: [['sum by (outcome) (increase(capstan_schedule_starts_total[1h]))', '{{outcome}}']],
      },
      {
        title: 'Deliveries to hooks',
        unit: 'short',
        lines: [['sum by (outcome) (increase(capstan_hook_deliveries_total[1h]))', '{{outcome}}']],
      },
      {
        title: 'Repairs',
        unit: 'short',
        lines: [
          ['sum by (kind) (increase(capstan_repairs_total[1h]))', '{{kind}}'],
          ['sum by (duty) (increase(capstan_maintenance_failures_total[1h]))', '{{duty}} failed'],
        ],
      },
      {
        title: 'Holders of maintenance',
        unit: 'short',
        lines: [['sum(capstan_maintenance_holder)', 'holders']],
      },
      {
        title: 'Late',
        unit: 's',
        lines: [
          ['max(capstan_deliveries_oldest_seconds)', 'oldest delivery'],
          ['max(capstan_event_horizon_lag_seconds)', 'events'],
        ],
      },
      {
        title: 'Connections to the database',
        unit: 'short',
        lines: [['sum by (instance, state) (capstan_database_pool_connections)', '{{instance}} {{state}}']],
      },
      {
        title: 'Free slots of workers',
        unit: 'short',
        lines: [
          [
            'min by (instance, worker_type) (temporal_worker_task_slots_available)',
            '{{instance}} {{worker_type}}',
          ],
        ],
      },
      {
        title: 'Memory',
        unit: 'bytes',
        lines: [['max by (instance) (process_resident_memory_bytes)', '{{instance}}']],
      },
      {
        title: 'Processor time',
        unit: 'percentunit',
        lines: [['sum by (instance) (rate(process_cpu_seconds_total[5m]))', '{{instance}}']],
      },
    ],
  },
];

/** Grafana replaces the variable by the choice of the reader. */
const datasource = { type: 'prometheus', uid: '$datasource' };
const height = 8;
const columns = 4;
const width = 24 / columns;

function toPanel({ title, unit, lines }: Panel, id: number, at: { x: number; y: number }): object {
  return {
    id,
    type: 'timeseries',
    title,
    datasource,
    gridPos: { h: height, w: width, ...at },
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    targets: lines.map(([expr, legendFormat], index) => ({
      refId: String.fromCharCode(65 + index),
      datasource,
      expr,
      legendFormat,
    })),
  };
}

function layOut(): object[] {
  const placed: object[] = [];
  let y = 0;
  for (const { title, panels } of dashboardRows) {
    placed.push({
      id: placed.length + 1,
      type: 'row',
      title,
      collapsed: false,
      gridPos: { h: 1, w: 24, x: 0, y },
    });
    y += 1;
    panels.forEach((panel, index) => {
      const x = (index % columns) * width;
      placed.push(toPanel(panel, placed.length + 1, { x, y: y + Math.floor(index / columns) * height }));
    });
    y += Math.ceil(panels.length / columns) * height;
  }
  return placed;
}

export const dashboardFile = 'deploy/telemetry/grafana-dashboard.json';

export function createDashboardFile(): Page {
  const dashboard = {
    uid: 'capstan',
    title: 'Capstan',
    tags: ['capstan'],
    schemaVersion: 39,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    templating: {
      list: [{ name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Data source' }],
    },
    panels: layOut(),
  };
  return { file: dashboardFile, text: `${JSON.stringify(dashboard, null, 2)}\n` };
}
