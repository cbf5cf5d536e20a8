/**
 * Corrected inputs of a step: which may be executed, and which need no model and no budget. Level 0 tries the one
 * repair that the schema allows, if the pipeline applies repairs, then the templates of matching skills, best first.
 * A skill may stand for a repair that people have decided often enough; `repair: off` alone excludes it.
 * Only valid corrections that change nothing protected are returned.
 */
import type { Json, JsonObject } from '../contracts/primitives.ts';
import type { RepairIdentity, ReviewProposal } from '../contracts/review.ts';
import type { ResolvedEscalation } from '../definition/step-settings.ts';
import { isEqual } from '../expression/compare.ts';
import { Meter, workLimits } from '../expression/meter.ts';
import { canonicalJson, describeFindings } from '../json/values.ts';
import type { SchemaFinding } from '../repair/candidate.ts';
import { chooseDecided, type Digest, identifyRepairs, isSameRepair } from '../repair/decided-repairs.ts';
import { applyRepair, proposeRepairs, type RepairProposal, type Repairs } from '../repair/propose-repairs.ts';
import type { RankedSkill } from '../skills/match.ts';
import { findProtectedChange } from '../skills/protected.ts';
import { applyTemplate, parseTemplate } from '../skills/template.ts';

/** The input that a capability accepts. */
export interface InputSpec {
  readonly schema: JsonObject;
  /** Faults of an input; empty when it is valid. */
  readonly find: (input: Json) => readonly SchemaFinding[] | Promise<readonly SchemaFinding[]>;
  /** Its repairs; absent: they are looked for here, by `find`. */
  readonly repair?: (input: Json) => Repairs | Promise<Repairs>;
}

/** It answers at once. */
export interface AnsweredSpec extends InputSpec {
  readonly find: (input: Json) => readonly SchemaFinding[];
  readonly repair?: (input: Json) => Repairs;
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
  /** Absent: repairs have no identity, so no decisions are about them. */
  readonly digest?: Digest;
}

/** The rules below work on this: `withAnswers` makes it. */
export interface AnsweredTask extends CorrectionTask {
  readonly spec: AnsweredSpec | null;
}

/** What has no answer yet. */
class Unanswered extends Error {
  readonly answered: Promise<unknown>;
  constructor(answered: Promise<unknown>) {
    super('a question has no answer yet');
    this.answered = answered;
  }
}

/** @returns what answers at once from what is known; @throws Unanswered for the rest, which is known afterwards */
function createMemory<Answer>(ask: (input: Json) => Answer | Promise<Answer>): (input: Json) => Answer {
  const known = new Map<string, Answer>();
  return (input) => {
    const name = canonicalJson(input);
    const answer = known.get(name) ?? ask(input);
    if (answer instanceof Promise) throw new Unanswered(answer.then((found) => known.set(name, found)));
    return answer;
  };
}

/** Applies a rule to the task. Each time an answer takes longer, it is awaited, and the rule is applied again. */
export async function withAnswers<Result>(
  { spec, ...task }: CorrectionTask,
  rule: (task: AnsweredTask) => Result,
): Promise<Result> {
  if (spec === null) return rule({ ...task, spec });
  const { schema, find, repair } = spec;
  const answered: AnsweredSpec = {
    schema,
    find: createMemory(find),
    ...(repair === undefined ? {} : { repair: createMemory(repair) }),
  };
  for (;;) {
    try {
      return rule({ ...task, spec: answered });
    } catch (error) {
      if (!(error instanceof Unanswered)) throw error;
      await error.answered;
    }
  }
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
  { spec, original, failed }: AnsweredTask,
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

function findRepairs({ spec, current, repair }: AnsweredTask): Repairs {
  if (spec === null || repair === 'off') return { proposals: [], applicable: null };
  const { schema, find, repair: repairOf } = spec;
  return repairOf?.(current) ?? proposeRepairs({ schema, input: current, errorsOf: find });
}

function identify(
  { spec, current, digest }: CorrectionTask,
  proposals: readonly RepairProposal[],
): readonly (RepairIdentity | null)[] {
  if (spec === null || digest === undefined) return [];
  return identifyRepairs({ schema: spec.schema, input: current, digest }, proposals);
}

/** @returns the correction of the task's input by a skill; undefined when its template does not apply */
function createSkillCorrection(task: AnsweredTask, { proposals }: Repairs, skills: readonly RankedSkill[]) {
  const input = task.current;
  const templates = new Map(
    skills.map(({ skill }) => {
      const parsing = parseTemplate(skill.template ?? '');
      return [skill.id, parsing.ok ? parsing.template : null];
    }),
  );
  const decided = [...templates.values()].flatMap((one) => (one?.kind === 'repair' ? [one.repair] : []));
  const identities = decided.length === 0 ? [] : identify(task, proposals);
  const chosen = chooseDecided(identities, decided);
  const meter = new Meter(workLimits.request);
  return ({ skill, groups }: RankedSkill): Json | undefined => {
    const template = templates.get(skill.id) ?? null;
    if (template === null || template.kind === 'text') return undefined;
    if (template.kind === 'repair') {
      const isChosen = chosen !== null && isSameRepair(identities[chosen] ?? null, template.repair);
      return isChosen ? applyRepair(input, proposals[chosen]?.operations ?? []) : undefined;
    }
    const result = applyTemplate(template, { input, match: groups }, meter);
    return result.ok ? result.input : undefined;
  };
}

function repairedInput({ current, repair }: CorrectionTask, { applicable }: Repairs): Json | undefined {
  if (applicable === null || repair !== 'apply') return undefined;
  return applyRepair(current, applicable.operations);
}

/** At most four corrections, the repair first. @param skills with a template, best first */
export function findCorrections(
  task: AnsweredTask,
  skills: readonly RankedSkill[],
): readonly CorrectedInput[] {
  const found: CorrectedInput[] = [];
  const add = (input: Json | undefined, source: string): void => {
    if (input === undefined || findCorrectionFault(task, input) !== null) return;
    if (!found.some((one) => isEqual(one.input, input))) found.push({ input, source });
  };
  const repairs = findRepairs(task);
  add(repairedInput(task, repairs), repairSource);
  const correct = createSkillCorrection(task, repairs, skills);
  for (const ranked of skills) {
    if (found.length === mostCorrections) break;
    add(correct(ranked), ranked.skill.id);
  }
  return found;
}

function toProposal(
  { operations, description }: RepairProposal,
  current: Json,
  repair: RepairIdentity | null,
): ReviewProposal {
  const input = applyRepair(current, operations) as Json;
  const patch = operations as unknown as readonly JsonObject[];
  const shown = { input, patch: [...patch], source: repairSource, note: description };
  return repair === null ? shown : { ...shown, repair };
}

/** Valid inputs for a person to choose from: repairs, even if the policy does not apply them itself. */
export function proposeCorrections(task: AnsweredTask): ReviewProposal[] {
  const { proposals } = findRepairs(task);
  const identities = identify(task, proposals);
  return proposals.map((proposal, at) => toProposal(proposal, task.current, identities[at] ?? null));
}
