/**
 * A stored skill: how it is checked, changed, identified, trusted and shown. Each change runs in the caller's
 * transaction and is audited. Versions stay; a retired skill keeps its id.
 *
 * A skill from an untrusted caller may hold only texts without hidden characters, patterns that compile to something
 * small and match something, and templates that parse and change nothing without a check of it.
 */
import { createHash } from 'node:crypto';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { ProblemItem } from '@capstan/core/contracts/problem';
import type { SkillPatch, SkillTrust } from '@capstan/core/contracts/skill';
import { AppError, refuseRequest } from '@capstan/core/errors/app-error';
import { canonicalJson } from '@capstan/core/json/values';
import { findTextFault, readPatterns } from '@capstan/core/skills/pattern';
import { findUnguardedChange, parseTemplate } from '@capstan/core/skills/template';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import {
  findSkill,
  keepSkill,
  retireSkill,
  reviseSkill,
  type SkillRow,
  type SkillText,
} from '../../db/skill.ts';
import { hasSqlState } from '../../db/statements.ts';
import type { Caller } from '../access/caller.ts';

// The identity of a skill within its job type: everything that a version holds. Signals are a set; patterns are tried
// in order.

export type SkillContent = Omit<SkillText, 'content_sha256' | 'author'>;

/** @param author the id of a key, or the part of Capstan that made it */
export function writeSkillText(content: SkillContent, author: string): SkillText {
  const { error_patterns, instructions, template } = content;
  const repo_signals = [...new Set(content.repo_signals)];
  const text = canonicalJson([repo_signals.toSorted(), [...error_patterns], instructions, template]);
  const content_sha256 = createHash('sha256').update(text).digest();
  return { repo_signals, error_patterns, instructions, template, content_sha256, author };
}

export interface SkillChange {
  readonly project_id: string;
  readonly skill_id: string;
  /** Id of the key that changes it. */
  readonly actor: string;
}

/** @throws AppError `not_found`, also when it is another project's */
export async function requireSkill(db: Db, projectId: string, skillId: string): Promise<SkillRow> {
  const row = await findSkill(db, projectId, skillId);
  if (row === undefined) throw new AppError('not_found', `no skill ${skillId}`);
  return row;
}

async function requireActive(trx: Db, { project_id, skill_id }: SkillChange): Promise<SkillRow> {
  const row = await requireSkill(trx, project_id, skill_id);
  if (row.state === 'active') return row;
  throw new AppError('state_conflict', `${skill_id} is retired; only active skills change`);
}

function note(
  trx: Db,
  { project_id, skill_id, actor }: SkillChange,
  entry: { readonly action: string; readonly data: JsonObject },
): Promise<void> {
  return insertAudit(trx, { project_id, actor, subject: skill_id, ...entry });
}

/** The unique index on the content of skills. */
function saysTheSame(thrown: unknown): boolean {
  return hasSqlState(thrown, 'unique_violation');
}

/**
 * Writes a new version; fields that the patch omits stay.
 * @param trust null: unchanged
 * @throws AppError `not_found`; `state_conflict` when it is retired, changed meanwhile, or equal to another
 */
export async function reviseSkillText(
  trx: Db,
  change: SkillChange,
  { patch, trust }: { readonly patch: SkillPatch; readonly trust: SkillTrust | null },
): Promise<void> {
  const { project_id, skill_id, actor } = change;
  const row = await requireActive(trx, change);
  const { pattern = {}, instructions = row.instructions, template = row.template } = patch;
  const { repo_signals = row.repo_signals, error_patterns = row.error_patterns } = pattern;
  const text = writeSkillText({ repo_signals, error_patterns, instructions, template }, actor);
  const revision = { ...text, project_id, skill_id, version: row.version, trust };
  const isRevised = await reviseSkill(trx, revision).catch((thrown: unknown) => {
    if (!saysTheSame(thrown)) throw thrown;
    throw new AppError('state_conflict', `an equal skill for ${row.job_type} exists already`);
  });
  if (!isRevised)
    throw new AppError('state_conflict', `${skill_id} was changed since you read it; read it again`);
  await note(trx, change, {
    action: 'skill.revised',
    data: { version: row.version + 1, trust: trust ?? row.trust },
  });
}

/** Removes the flag until the skill fails again. @throws AppError `not_found`, `state_conflict` when it is retired */
export async function keepSkillAsItIs(trx: Db, change: SkillChange): Promise<void> {
  await requireActive(trx, change);
  await keepSkill(trx, change.project_id, change.skill_id);
  await note(trx, change, { action: 'skill.kept', data: {} });
}

/** Repeated, it changes nothing. @param into the better skill that replaces it @throws AppError `not_found` */
export async function retireSkillForGood(trx: Db, change: SkillChange, into?: string): Promise<void> {
  const row = await requireSkill(trx, change.project_id, change.skill_id);
  if (row.state === 'retired') return;
  await retireSkill(trx, change.project_id, change.skill_id);
  await note(trx, change, { action: 'skill.retired', data: into === undefined ? {} : { into } });
}

/** Absent parts are ignored. */
interface UncheckedSkill {
  readonly source?: string | undefined;
  readonly instructions?: string | undefined;
  readonly template?: string | null | undefined;
  readonly pattern?:
    | {
        readonly job_type?: string;
        readonly repo_signals?: readonly string[] | undefined;
        readonly error_patterns?: readonly string[] | undefined;
      }
    | undefined;
}

/**
 * @param prefix JSON Pointer of the skill in the request
 * @throws AppError `request_invalid` with every fault
 */
export function checkSkill(skill: UncheckedSkill, prefix = ''): void {
  const { source, instructions, template, pattern: { job_type, repo_signals, error_patterns } = {} } = skill;
  const list = (name: string, texts: readonly string[] = []) =>
    texts.map((text, index) => [`/pattern/${name}/${index}`, text] as const);
  const texts: readonly (readonly [string, string | null | undefined])[] = [
    ['/source', source],
    ['/instructions', instructions],
    ['/template', template],
    ['/pattern/job_type', job_type],
    ...list('repo_signals', repo_signals),
    ...list('error_patterns', error_patterns),
  ];
  const items = texts.flatMap(([pointer, text]) => (text ? checkText(text, pointer) : []));
  items.push(...checkPatterns(error_patterns ?? []), ...(template ? checkTemplate(template) : []));
  const [first] = items;
  if (first === undefined) return;
  throw new AppError('request_invalid', `${prefix}${first.pointer}: ${first.message}`, {
    errors: items.map((item) => ({ ...item, pointer: `${prefix}${item.pointer}` })),
  });
}

/** @throws AppError `request_invalid` */
export function checkQueryText(name: string, text: string): void {
  const [item] = checkText(text, `/query/${name}`);
  if (item !== undefined) throw refuseRequest([item]);
}

function checkText(text: string, pointer: string): ProblemItem[] {
  const fault = findTextFault(text);
  return fault === null ? [] : [{ pointer, code: 'hidden_character', message: fault.message }];
}

function checkPatterns(patterns: readonly string[]): ProblemItem[] {
  return patterns.flatMap((pattern, index) => {
    const reading = readPatterns([pattern]);
    const pointer = `/pattern/error_patterns/${index}`;
    return reading.ok ? [] : [{ pointer, code: 'invalid_pattern', message: reading.message }];
  });
}

function checkTemplate(text: string): ProblemItem[] {
  const parsing = parseTemplate(text);
  const fault = (message: string) => [{ pointer: '/template', code: 'invalid_template', message }];
  if (!parsing.ok) return fault(parsing.message);
  if (parsing.template.kind !== 'patch') return [];
  const unguarded = findUnguardedChange(parsing.template.operations);
  return unguarded === null ? [] : fault(unguarded);
}

/** Only admin keys can send trusted skills. Other callers' skills are candidates, which models see as a hint. */
export function isAdmin({ scopes }: Caller): boolean {
  return scopes.has('admin');
}

export function trustOf(caller: Caller): SkillTrust {
  return isAdmin(caller) ? 'trusted' : 'candidate';
}

/**
 * @param isDecision a person decides in a review, which needs a scope of its own
 * @returns null: unchanged
 * @throws AppError `forbidden`
 */
export function trustOfPatch(
  caller: Caller,
  { trust }: SkillPatch,
  { isDecision }: { readonly isDecision: boolean },
): SkillTrust | null {
  if (isAdmin(caller)) return trust ?? null;
  if (trust !== undefined)
    throw new AppError('forbidden', `${caller.key_id} is not an admin key; only admin keys set trust`);
  return isDecision ? null : 'candidate';
}
