/** A run against mocks as a person reads it: the steps, what came out, and what was expected. */
import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import type { StepState } from '../../contracts/run.ts';
import type { Difference } from '../../mock-run/check-expectation.ts';
import type { LocalResult } from '../../mock-run/run-locally.ts';
import { indentJson } from '../watch/outcome.ts';
import { formatDuration, formatUsd } from './amounts.ts';
import type { Printer } from './print.ts';
import { type AnyState, formatState } from './states.ts';
import type { Column } from './table.ts';

const columns: readonly Column[] = [
  { header: 'STEP' },
  { header: 'STATE' },
  { header: 'ATTEMPT', align: 'right' },
  { header: 'BEGAN', align: 'right' },
  { header: 'TIME', align: 'right' },
  { header: 'COST', align: 'right' },
  { header: 'ERROR', shrinks: true },
];

type Step = LocalResult['steps'][number];

function nameOf({ id, item }: Step): string {
  return item === 0 ? id : `  ${id}[${item}]`;
}

function renderStep(step: Step, { style }: Printer): string[] {
  const { started_at_ms: began, finished_at_ms: ended, error } = step;
  return [
    nameOf(step),
    formatState(step.state satisfies StepState, style),
    step.attempts === 0 ? '' : String(step.attempts),
    began === null ? '' : formatDuration(began),
    began === null || ended === null ? '' : formatDuration(ended - began),
    step.cost_usd === 0 ? '' : formatUsd(step.cost_usd),
    error === undefined || step.state === 'succeeded' ? '' : style.red(`${error.code}: ${error.message}`),
  ];
}

/** `waiting` and `refused` are no states of a stored run. */
function formatOutcome({ outcome }: LocalResult, { style }: Printer): string {
  return outcome === 'refused' ? style.red('✗ refused') : formatState(outcome satisfies AnyState, style);
}

function showDifferences(print: Printer, differences: readonly Difference[]): void {
  const { style } = print;
  if (differences.length === 0) print.line(style.green('✓ as expected'));
  for (const { at, expected, actual } of differences) {
    print.line(style.bold(at));
    print.line(style.green(`  expected ${expected}`));
    print.line(style.red(`  actual   ${actual}`));
  }
}

/** @param differences null when nothing is expected */
export function showMockRun(
  print: Printer,
  { pipeline, version }: PipelineDefinition,
  result: LocalResult,
  differences: readonly Difference[] | null,
): void {
  const { style } = print;
  const head = [formatOutcome(result, print), `${style.bold(pipeline)}@${version}`];
  print.line([...head, formatDuration(result.duration_ms), formatUsd(result.cost_usd)].join('  '));
  print.line();
  print.table(
    columns,
    result.steps.map((step) => renderStep(step, print)),
  );
  print.line();
  if (result.error !== null) print.line(style.red(`${result.error.code}: ${result.error.message}`));
  if (result.outcome === 'succeeded') print.lines([style.bold('output'), ...indentJson(result.output)]);
  if (differences !== null) showDifferences(print, differences);
}
