/**
 * Crystallisation: makes a skill from the advice that helped, once per escalation. The error that the last advice
 * answered becomes its pattern, the advice its instructions. A pattern that would match other errors too makes no
 * skill. A correction becomes a template only if the template turns the failed input into exactly the one that worked;
 * otherwise only the instructions are kept.
 *
 * The template of a correction is the most general one that passes the gate.
 */
import type { Json } from '@capstan/core/contracts/primitives';
import type { SkillTrust } from '@capstan/core/contracts/skill';
import { humanLevel } from '@capstan/core/ladder/levels';
import { deriveTemplate, passGate } from '@capstan/core/skills/derive-template';
import { generalizeError } from '@capstan/core/skills/generalize-error';
import {
  type ErrorGroups,
  findTextFault,
  longestText,
  matchPatterns,
  readPatterns,
} from '@capstan/core/skills/pattern';
import { writeTemplate } from '@capstan/core/skills/write-template';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import { listRecentErrors } from '../../db/escalation/escalation.ts';
import { findSkillOfEscalation, storeSkill } from '../../db/skill.ts';
import { newId } from '../../parts/ids.ts';
import { type SkillContent, writeSkillText } from './stored-skill.ts';

interface WorkedCorrection {
  /** The input that failed with the error. */
  readonly original: Json;
  /** The input that worked. */
  readonly corrected: Json;
  /** Whether the capability's schema accepts it. */
  readonly isValid: boolean;
}

interface Cause {
  readonly error: string;
  /** Named groups of the skill's pattern in it. */
  readonly match: ErrorGroups;
}

/** @returns null when none passes */
function chooseTemplate(
  { original, corrected, isValid }: WorkedCorrection,
  { error, match }: Cause,
): string | null {
  const written = [
    () => deriveTemplate({ input: original, match }, corrected, error),
    () => writeTemplate(original, corrected),
  ];
  for (const write of written) {
    const text = write();
    if (text === null) continue;
    if (passGate({ template: text, original, corrected, match, isValid }).ok) return text;
  }
  return null;
}

/** Escalations whose errors a pattern is tested on. */
const recentEscalations = 100;
const mostStrangers = 0.05;

export interface Learning {
  readonly project_id: string;
  readonly job_type: string;
  /** Null: a call of `/execute`. */
  readonly escalation_id: string | null;
  readonly signals: readonly string[];
  /** The error that the advice answered, with its fingerprint. */
  readonly error: string;
  readonly fingerprint: string;
  /** The level that gave the advice; 5 = a person. */
  readonly from_level: number;
  /** Null: the correction holds everything. */
  readonly instructions: string | null;
  /** `candidate` where the advice or the error came from an untrusted caller. */
  readonly trust: SkillTrust;
  /** The fault of a step's input and the input that worked; null for a job without a step. */
  readonly correction: WorkedCorrection | null;
}

/**
 * @param trx in which the escalation's success is stored
 * @returns the skill, new or an equal one; null when there is nothing general to learn
 */
export async function learnSkill(trx: Db, learning: Learning): Promise<string | null> {
  const { project_id, job_type, escalation_id, from_level, trust } = learning;
  const made = escalation_id === null ? undefined : await findSkillOfEscalation(trx, escalation_id);
  if (made !== undefined) return made;
  const content = await readContent(trx, learning);
  if (content === null) return null;
  const author = escalation_id ?? 'execute';
  const source = from_level === humanLevel ? 'human-fix' : `escalation-l${from_level}`;
  const { skill_id, is_new } = await storeSkill(trx, {
    ...writeSkillText(content, author),
    skill_id: newId('skill'),
    project_id,
    job_type,
    trust,
    source,
    escalation_id,
    success_count: 1,
    failure_count: 0,
    added_failure: 0,
    added_success: trust === 'trusted' ? 1 : 0, // a candidate's history is its caller's own claim
    last_used_at: null,
    created_at: null,
  });
  const action = is_new ? 'skill.created' : 'skill.counted';
  await insertAudit(trx, { project_id, actor: author, action, subject: skill_id, data: { source, trust } });
  return skill_id;
}

async function readContent(trx: Db, learning: Learning): Promise<SkillContent | null> {
  const pattern = generalizeError(learning.error);
  if (pattern === null || !(await isParticular(trx, pattern, learning))) return null;
  const { error, correction } = learning;
  const cause = { error, match: matchOf(pattern, error) ?? {} };
  const template = correction === null ? null : chooseTemplate(correction, cause);
  const instructions = cleanText(learning.instructions ?? describeTemplate(template));
  if (instructions === '') return null;
  return { repo_signals: keepSignals(learning.signals), error_patterns: [pattern], instructions, template };
}

function matchOf(pattern: string, error: string) {
  const reading = readPatterns([pattern]);
  return reading.ok ? matchPatterns(reading.patterns, error) : null;
}

/** Whether the pattern matches hardly any other failure. */
async function isParticular(trx: Db, pattern: string, learning: Learning): Promise<boolean> {
  const reading = readPatterns([pattern]);
  if (!reading.ok) return false;
  const recent = await listRecentErrors(trx, learning, recentEscalations);
  const others = recent.filter(({ fingerprint }) => fingerprint !== learning.fingerprint);
  const strangers = others.filter(({ error }) => matchPatterns(reading.patterns, error) !== null);
  return strangers.length <= others.length * mostStrangers;
}

/** The position is not part of the error: the same mistake in another pipeline has the same remedy. */
function keepSignals(signals: readonly string[]): string[] {
  return signals.filter(
    (signal) => !/^(?:pipeline|step|tag):/.test(signal) && findTextFault(signal) === null,
  );
}

function describeTemplate(template: string | null): string {
  return template === null ? '' : `Correct the input by this JSON Patch: ${template}`;
}

/** Models and people write line ends and invisible characters, which skills may not hold. */
function cleanText(text: string): string {
  let kept = '';
  let rest = text.replace(/\r\n?/g, '\n').trim().slice(0, longestText);
  for (let fault = findTextFault(rest); fault !== null; fault = findTextFault(rest)) {
    const hidden = String.fromCodePoint(rest.codePointAt(fault.index) ?? 0);
    kept += rest.slice(0, fault.index);
    rest = rest.slice(fault.index + hidden.length);
  }
  return kept + rest;
}
