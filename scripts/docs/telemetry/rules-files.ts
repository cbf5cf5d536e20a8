/** The alerts as rules of Prometheus, and the tests of those rules for `promtool test rules`. */
import { stringify } from 'yaml';
import { generateCommand, type Page } from '../page.ts';
import { type Alert, alerts, toExpression } from './alerts.ts';

export const rulesFile = 'deploy/telemetry/capstan.rules.yml';
export const rulesTestFile = 'deploy/telemetry/capstan.rules.test.yml';

const made = `# Made from scripts/docs/telemetry/alerts.ts by ${generateCommand}; do not edit.\n`;

function toYaml(value: object): string {
  return made + stringify(value, { lineWidth: 0 });
}

function toRule(alert: Alert): object {
  const { name, severity, summary } = alert;
  return {
    alert: name,
    expr: toExpression(alert),
    ...(alert.for === undefined ? {} : { for: alert.for }),
    labels: { severity },
    annotations: { summary, runbook: runbookOf(alert) },
  };
}

function runbookOf({ name }: Alert): string {
  return `docs/reference/alerts.md#${name.toLowerCase()}`;
}

/** A rule fires beside its example, half an hour on, and does not beside what is calm. */
function toTests(alert: Alert): object[] {
  const { name, severity, example, calm } = alert;
  const at = '31m';
  const firing = [
    {
      exp_labels: { severity, ...example.labels },
      exp_annotations: { summary: example.says, runbook: runbookOf(alert) },
    },
  ];
  const test = (input: readonly object[], exp_alerts: readonly object[]): object => ({
    interval: '1m',
    input_series: input,
    alert_rule_test: [{ eval_time: at, alertname: name, exp_alerts }],
  });
  return [test(example.input, firing), test(calm, [])];
}

export function createRulesFiles(): Page[] {
  const rules = { groups: [{ name: 'capstan', interval: '30s', rules: alerts.map(toRule) }] };
  const tests = {
    rule_files: ['capstan.rules.yml'],
    evaluation_interval: '1m',
    tests: alerts.flatMap(toTests),
  };
  return [
    { file: rulesFile, text: toYaml(rules) },
    { file: rulesTestFile, text: toYaml(tests) },
  ];
}
