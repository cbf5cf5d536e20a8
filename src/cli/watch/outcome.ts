/** What a run left: its output and how to get it, and for a failure what happened and where to look. */
import { parseMediaReference } from '../../contracts/media.ts';
import type { Json } from '../../contracts/primitives.ts';
import type { Run, RunStep } from '../../contracts/run.ts';
import type { Style } from '../render/style.ts';

/** Every distinct media reference in a value, in the order of appearance. */
export function findMediaReferences(value: Json | undefined): string[] {
  const found = new Set<string>();
  const visit = (part: Json | undefined): void => {
    if (typeof part === 'string' && parseMediaReference(part) !== null) found.add(part);
    if (typeof part === 'object' && part !== null) Object.values(part).forEach(visit);
  };
  visit(value);
  return [...found];
}

export function indentJson(value: Json): string[] {
  return JSON.stringify(value, null, 2)
    .split('\n')
    .map((line) => `  ${line}`);
}

function renderOutput(run: Run, style: Style): string[] {
  if (run.output === undefined) return [];
  const downloads = findMediaReferences(run.output).map((reference) => `  capstan media get ${reference}`);
  const download = downloads.length === 0 ? [] : [style.bold('download'), ...downloads];
  return [style.bold('output'), ...indentJson(run.output), ...download];
}

function hasFailed(step: RunStep): boolean {
  return step.state === 'failed' || step.state === 'unknown';
}

function renderFailures(run: Run, style: Style): string[] {
  const steps = run.steps
    .filter(hasFailed)
    .flatMap((step) => [
      `  ${style.bold(step.id)}  ${step.error === undefined ? step.state : `${step.error.code}: ${step.error.message}`}`,
      `  ${style.dim(`capstan show ${run.run_id} --step ${step.id}`)}`,
    ]);
  const own = run.error === undefined ? [] : [`${style.red(run.error.code)}: ${run.error.message}`];
  return [...own, ...steps];
}

export function renderOutcome(run: Run, style: Style): string[] {
  return [
    ...(run.state === 'succeeded' ? [] : renderFailures(run, style)),
    ...renderOutput(run, style),
    ...(run.links.console === undefined ? [] : [style.dim(run.links.console)]),
  ];
}
