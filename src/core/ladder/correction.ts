/**
 * Corrected inputs of a step: which may be executed, and which need no model and no budget. Level 0 tries the one
 * repair that the schema allows, if the pipeline applies repairs, then the templates of matching skills, best first.
 * Only valid corrections that change nothing protected are returned.
 */
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import type { ReviewProposal } from '../../contracts/review.ts';
import type { ResolvedEscalation } from '../definition/step-settings.ts';
import { isEqual } from '../expression/compare.ts';
import { describeFindings } from '../json/values.ts';
import type { SchemaFinding } from '../repair/candidate.ts';
import { applyRepair, proposeRepairs, type RepairProposal, type Repairs } from '../repair/propose-repairs.ts';
import type { RankedSkill } from '../skills/match.ts';
import { findProtectedChange } from '../skills/protected.ts';
import { applyTemplate, parseTemplate } from '../skills/template.ts';

/** The input that a capability accepts. */
export interface InputSpec {
  readonly schema: JsonObject;
  /** Faults of an input; empty when it is valid. */
  readonly find: (input: Json) => readonly SchemaFinding[];
}

/** The constraints on a correction. */
export interface CorrectionTask {
  readonly capability: string;
  readonly repair: ResolvedEscalation['repair'];
  /** Null: no instance has yet published its spec. */
  readonly spec: InputSpec | null;
  /** The author's input. */
  readonly original: Json;
  /** The input of the last failure. */
  readonly current: Json;
  /** Inputs that have failed. */
  readonly failed: readonly Json[];
}

export interface CorrectedInput {
  readonly input: Json;
  /** `repair`, the id of a skill, the label of a level, or `review:<id>`. */
  readonly source: string;
}

export const repairSource = 'repair';
const mostCorrections = 4;

export interface CorrectionFault {
  readonly code: 'input_invalid' | 'change_refused' | 'tried';
  readonly message: string;
}

/**
 * Why a corrected input is not executed; null when it may be. @param isDecided a person chose it: it may repeat an
 * input and change protected values
 */
export function findCorrectionFault(
  { spec, original, failed }: CorrectionTask,
  input: Json,
  isDecided = false,
): CorrectionFault | null {
  const change = findProtectedChange(original, input);
  if (change !== null && !isDecided) {
    const message = `the corrected input is refused: ${change.pointer || '/'} ${change.reason}`;
    return { code: 'change_refused', message };
  }
  const findings = spec?.find(input) ?? [];
  if (findings.length > 0) {
    const seen = describeFindings(findings);
    const message = `the corrected input does not match the input schema: ${seen}`;
    return { code: 'input_invalid', message };
  }
  const isTried = !isDecided && failed.some((one) => isEqual(one, input));
  return isTried ? { code: 'tried', message: 'this input has failed before' } : null;
}

function findRepairs({ spec, current, repair }: CorrectionTask): Repairs {
  if (spec === null || repair === 'off') return { proposals: [], applicable: null };
  return proposeRepairs({ schema: spec.schema, input: current, errorsOf: spec.find });
}

/** The input corrected by a skill's template; undefined when the template does not apply. */
function correctBySkill({ skill, groups }: RankedSkill, input: Json): Json | undefined {
  const parsing = parseTemplate(skill.template ?? '');
  if (!parsing.ok || parsing.template.kind !== 'patch') return undefined;
  const result = applyTemplate(parsing.template, { input, match: groups });
  return result.ok ? result.input : undefined;
}

function repairedInput(task: CorrectionTask): Json | undefined {
  const { applicable } = findRepairs(task);
  if (applicable === null || task.repair !== 'apply') return undefined;
  return applyRepair(task.current, applicable.operations);
}

/** At most four corrections, the repair first. @param skills with a template, best first */
export function findCorrections(
  task: CorrectionTask,
  skills: readonly RankedSkill[],
): readonly CorrectedInput[] {
  const found: CorrectedInput[] = [];
  const add = (input: Json | undefined, source: string): void => {
    if (input === undefined || findCorrectionFault(task, input) !== null) return;
    if (!found.some((one) => isEqual(one.input, input))) found.push({ input, source });
  };
  add(repairedInput(task), repairSource);
  for (const ranked of skills) add(correctBySkill(ranked, task.current), ranked.skill.id);
  return found.slice(0, mostCorrections);
}

function toProposal({ operations, description }: RepairProposal, current: Json): ReviewProposal {
  const input = applyRepair(current, operations) as Json;
  const patch = operations as unknown as readonly JsonObject[];
  return { input, patch: [...patch], source: repairSource, note: description };
}

/** Valid inputs for a person to choose from: repairs, even if the policy does not apply them itself. */
export function proposeCorrections(task: CorrectionTask): ReviewProposal[] {
  return findRepairs(task).proposals.map((proposal) => toProposal(proposal, task.current));
}
