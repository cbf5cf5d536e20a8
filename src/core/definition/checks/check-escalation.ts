/** Escalation settings that contradict each other, and those that can have no effect. */
import type { EscalatePolicy, PipelineDefinition, StepDefinition } from '../../../contracts/pipeline.ts';
import { isModel, resolveEscalation } from '../compile/escalation-settings.ts';
import { stepKindOf } from '../step-kind.ts';
import type { DefinitionFinding, FindingCode } from './finding.ts';

export function checkEscalation(definition: PipelineDefinition): DefinitionFinding[] {
  return [
    ...checkDefaults(definition.defaults?.escalate ?? {}),
    ...definition.steps.flatMap((step, index) => checkStep(definition, step, `/steps/${index}`)),
  ];
}

function checkDefaults({ start_level = 0, max_level = 4 }: EscalatePolicy): DefinitionFinding[] {
  return start_level > max_level
    ? [levelsSwapped(start_level, max_level, '/defaults/escalate/start_level')]
    : [];
}

function checkStep(
  definition: PipelineDefinition,
  step: StepDefinition,
  pointer: string,
): DefinitionFinding[] {
  if (stepKindOf(step) !== 'call') return [];
  const { escalate = {} } = step;
  const resolved = resolveEscalation(definition, step);
  const findings: DefinitionFinding[] = [];
  if (isModel(step)) {
    if (escalate.enabled === true) {
      const message = `${step.capability} never escalates: models do not correct models`;
      findings.push(warning('escalation_unused', `${pointer}/escalate/enabled`, message));
    }
  } else if (resolved.start_level > resolved.max_level) {
    const key = escalate.start_level === undefined ? 'max_level' : 'start_level';
    if (escalate[key] !== undefined) {
      findings.push(levelsSwapped(resolved.start_level, resolved.max_level, `${pointer}/escalate/${key}`));
    }
  }
  if (resolved.needs_person && escalate.repair === 'apply') {
    const message = 'retry.max is 0, so nothing is executed again before a person decided';
    findings.push(warning('escalation_unused', `${pointer}/escalate/repair`, message));
  }
  if (resolved.enabled && resolved.on_exhausted === 'wait') return findings;
  for (const key of ['allow_output', 'optional'] as const) {
    if (step[key] !== true) continue;
    const message = `${key} is for a reviewer, but this step never waits for a review`;
    findings.push(warning('review_unused', `${pointer}/${key}`, message));
  }
  return findings;
}

function levelsSwapped(start: number, max: number, pointer: string): DefinitionFinding {
  return {
    severity: 'error',
    code: 'escalation_levels_swapped',
    pointer,
    message: `start_level ${start} is above max_level ${max}`,
  };
}

function warning(code: FindingCode, pointer: string, message: string): DefinitionFinding {
  return {
    severity: 'warning',
    code,
    pointer,
    message,
  };
}
