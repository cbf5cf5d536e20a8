/** Checks steps with `repeat`: what excludes it, and conditions and inputs by which no round differs from another. */
import type { PipelineDefinition, StepDefinition } from '../../contracts/pipeline.ts';
import { parseDuration } from '../../duration.ts';
import type { DefinitionTemplates, ReferencingTemplate, StepTemplates } from '../compile.ts';
import { resolveCache } from '../step-settings.ts';
import type { DefinitionFinding, FindingCode } from './finding.ts';

export function checkRepeats(
  { steps }: PipelineDefinition,
  templates: DefinitionTemplates,
): DefinitionFinding[] {
  return steps.flatMap((step, index) => {
    const readings = templates.steps[index];
    return step.repeat === undefined || readings === undefined
      ? []
      : checkRepeat(step, readings, `/steps/${index}`);
  });
}

function checkRepeat(step: StepDefinition, readings: StepTemplates, pointer: string): DefinitionFinding[] {
  const { for_each, repeat } = step;
  if (repeat === undefined) return [];
  const findings: DefinitionFinding[] = [];
  if (for_each !== undefined) {
    const message = 'a step has for_each or repeat, not both';
    const suggestion = 'put the step with repeat into a pipeline of its own, and let for_each run that';
    findings.push(refusal('repeat_conflict', `${pointer}/repeat`, message, suggestion));
  }
  const isVaried = mentionsRound(readings.input);
  if (!isVaried && resolveCache({}, step) !== null) {
    const message = 'every round has the same input, so the cache would answer each with the first result';
    const suggestion = 'remove cache, or use round.index or round.previous in the input';
    findings.push(refusal('repeat_conflict', `${pointer}/cache`, message, suggestion));
  }
  const { pause, timeout } = repeat;
  if (pause !== undefined && timeout !== undefined && parseDuration(pause) >= parseDuration(timeout)) {
    const message = `the pause of ${pause} is over when the timeout of ${timeout} has passed: there is one round`;
    findings.push(refusal('repeat_conflict', `${pointer}/repeat/pause`, message));
  }
  const isConstant = readings.until !== null && !mentionsRound(readings.until);
  if (isConstant && readings.until?.errors.length === 0) findings.push(constantCondition(pointer));
  return findings;
}

function mentionsRound({ references }: ReferencingTemplate): boolean {
  return references.some(({ root }) => root === 'round');
}

/** Nothing else changes between rounds: other steps have ended. */
function constantCondition(pointer: string): DefinitionFinding {
  return {
    severity: 'warning',
    code: 'repeat_useless',
    pointer: `${pointer}/repeat/until`,
    message: 'the condition reads nothing of the round, so it holds after the first round or never',
    suggestion: 'compare round.output or round.index, such as round.output.status == "done"',
  };
}

// biome-ignore lint/complexity/useMaxParams: a finding in the order in which it reads
function refusal(
  code: FindingCode,
  pointer: string,
  message: string,
  suggestion?: string,
): DefinitionFinding {
  return { severity: 'error', code, pointer, message, suggestion };
}
