/**
 * Corrections of a step's input that need no model and no money: the one repair that its schema allows, where the
 * pipeline lets it be applied, then the templates of matching skills, best first. Each is valid and touches nothing
 * protected, or it is not there.
 */
import type { Json, JsonObject } from '../../../contracts/primitives.ts';
import type { ReviewProposal } from '../../../contracts/review.ts';
import { isEqual } from '../../../core/expression/equality.ts';
import { applyRepair } from '../../../core/repair/operation.ts';
import { proposeRepairs, type RepairProposal, type Repairs } from '../../../core/repair/propose-repairs.ts';
import { applyTemplate } from '../../../core/skills/template/apply-template.ts';
import { parseTemplate } from '../../../core/skills/template/template.ts';
import type { RankedSkill, SkillMatcher } from '../../skills/match-skills.ts';
import type { Correction } from '../ladder/run-correction.ts';
import { findCorrectionFault, type StepTask } from '../ladder/step-task.ts';

export const repairSource = 'repair';

export interface LevelZero {
  readonly corrections: readonly Correction[];
  /** That match the error, with a template. */
  readonly skills: readonly RankedSkill[];
}

const mostCorrections = 4;

function findRepairs({ spec, current, ladder }: StepTask): Repairs {
  if (spec === null || ladder.policy?.repair === 'off') return { proposals: [], applicable: null };
  return proposeRepairs({ schema: spec.schema, input: current, errorsOf: spec.find });
}

/** What a skill's template makes of the input; undefined when it does not apply. */
function correctBySkill({ skill, groups }: RankedSkill, input: Json): Json | undefined {
  const parsing = parseTemplate(skill.template ?? '');
  if (!parsing.ok || parsing.template.kind !== 'patch') return undefined;
  const result = applyTemplate(parsing.template, { input, match: groups });
  return result.ok ? result.input : undefined;
}

function repairedInput(task: StepTask): Json | undefined {
  const { applicable } = findRepairs(task);
  if (applicable === null || task.ladder.policy?.repair !== 'apply') return undefined;
  return applyRepair(task.current, applicable.operations);
}

function matchTemplates(matcher: SkillMatcher, { row, signals, error }: StepTask) {
  const { project_id, job_type } = row;
  return matcher.match({ project_id, job_type, signals, error, with_template: true });
}

export async function findCorrections(matcher: SkillMatcher, task: StepTask): Promise<LevelZero> {
  const skills = await matchTemplates(matcher, task);
  const found: { input: Json; source: string }[] = [];
  const add = (input: Json | undefined, source: string): void => {
    if (input === undefined || findCorrectionFault(task, input) !== null) return;
    if (!found.some((one) => isEqual(one.input, input))) found.push({ input, source });
  };
  add(repairedInput(task), repairSource);
  for (const ranked of skills) add(correctBySkill(ranked, task.current), ranked.skill.id);
  const corrections = found.slice(0, mostCorrections).map((one, choice) => ({ ...one, choice }));
  return { corrections, skills };
}

function toProposal({ operations, description }: RepairProposal, current: Json): ReviewProposal | undefined {
  const input = applyRepair(current, operations);
  if (input === undefined) return undefined;
  const patch = operations as unknown as readonly JsonObject[];
  return { input, patch: [...patch], source: repairSource, note: description };
}

/** Valid inputs for a person to choose from: repairs, whatever the policy applies itself. */
export function proposeCorrections(task: StepTask): ReviewProposal[] {
  return findRepairs(task)
    .proposals.map((proposal) => toProposal(proposal, task.current))
    .filter((proposal) => proposal !== undefined)
    .filter(({ input }) => findCorrectionFault(task, input, true) === null);
}
