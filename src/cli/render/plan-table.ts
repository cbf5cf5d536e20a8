/** A plan for people: a row per step, what it costs in all, and what it waits for longest. */
import type { Finding } from '../../contracts/pipeline.ts';
import type { Plan, PlannedStepView } from '../../contracts/plan.ts';
import { formatDuration, formatUsd } from './amounts.ts';
import { renderDispatch } from './dispatch-lines.ts';
import type { Printer } from './print.ts';
import type { Style } from './style.ts';
import type { Column } from './table.ts';

const columns: readonly Column[] = [
  { header: 'STEP' },
  { header: 'WHAT', shrinks: true },
  { header: 'HAPPENS' },
  { header: 'ITEMS', align: 'right' },
  { header: 'CHOSEN', shrinks: true },
  { header: 'HOW' },
  { header: 'TIME', align: 'right' },
  { header: 'MIN', align: 'right' },
  { header: 'EXPECTED', align: 'right' },
  { header: 'WORST', align: 'right' },
];

const happensWords = { yes: 'yes', no: 'no', unknown: 'maybe' } as const;

function describeItems(items: PlannedStepView['items']): string {
  return items === undefined ? '' : items === null ? '?' : String(items);
}

function renderStep(step: PlannedStepView): string[] {
  const { id, happens, items, chosen, dispatch, cost_usd, duration_ms } = step;
  const what = step.capability ?? step.pipeline ?? (step.wait === undefined ? 'review' : `wait ${step.wait}`);
  const name = [id, what, happensWords[happens], describeItems(items)];
  if (happens === 'no') return [...name, '', '', '', '', '', ''];
  const { min, expected, worst } = cost_usd;
  const nobody = step.capability === undefined ? '' : step.cached === undefined ? 'nobody' : 'cached';
  const call = [chosen ?? nobody, dispatch?.how ?? ''];
  return [...name, ...call, formatDuration(duration_ms), ...[min, expected, worst].map(formatUsd)];
}

const colours = { error: 'red', warning: 'yellow', note: 'blue' } as const;

function renderFinding({ severity, code, pointer, message }: Finding, style: Style): string {
  return `${style[colours[severity]](severity)} ${code} ${message}${pointer === '' ? '' : ` (at ${pointer})`}`;
}

function dispatchOf({ capability, dispatch, happens }: PlannedStepView) {
  return capability === undefined || dispatch === undefined || happens === 'no'
    ? []
    : [{ capability, ...dispatch }];
}

/** Such a run would wait for money, or fail. */
export function isExpectedAbove({ budget_ceiling_usd: ceiling, cost_usd }: Plan): boolean {
  return ceiling !== null && cost_usd.expected > ceiling;
}

function describeCeiling(plan: Plan): string {
  const { budget_ceiling_usd: ceiling, within_ceiling } = plan;
  if (ceiling === null || within_ceiling) return '';
  const what = isExpectedAbove(plan) ? 'the expected cost' : 'only the worst case';
  return `; ${what} is above the ceiling of ${formatUsd(ceiling)}`;
}

export function showPlan(plan: Plan, print: Printer): void {
  const { pipeline, version, cost_usd, critical_path, missing, findings } = plan;
  print.line(`${pipeline}@${version}`);
  print.table(columns, plan.steps.map(renderStep));
  const { min, expected, worst } = cost_usd;
  const range = `at least ${formatUsd(min)}, about ${formatUsd(expected)}, at worst ${formatUsd(worst)}`;
  print.line(`cost: ${range}${describeCeiling(plan)}`);
  const { steps, duration_ms } = critical_path;
  print.line(
    `time: about ${formatDuration(duration_ms)}${steps.length === 0 ? '' : `: ${steps.join(' → ')}`}`,
  );
  print.lines(renderDispatch(plan.steps.flatMap(dispatchOf)).map((line) => print.style.dim(line)));
  if (missing.length > 0) print.line(`nobody has registered: ${missing.join(', ')}`);
  print.lines(findings.map((finding) => renderFinding(finding, print.style)));
}
