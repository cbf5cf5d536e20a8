/** What tells two skills of a job type apart: everything a version says. Signals are a set, patterns are tried in order. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../core/canonical-json.ts';
import type { SkillText } from '../../db/skill/skill.ts';

export type SkillContent = Omit<SkillText, 'content_sha256' | 'author'>;

/** @param author the id of a key, or what made it */
export function writeSkillText(content: SkillContent, author: string): SkillText {
  const { error_patterns, instructions, template } = content;
  const repo_signals = [...new Set(content.repo_signals)];
  const text = canonicalJson([repo_signals.toSorted(), [...error_patterns], instructions, template]);
  const content_sha256 = createHash('sha256').update(text).digest();
  return { repo_signals, error_patterns, instructions, template, content_sha256, author };
}
