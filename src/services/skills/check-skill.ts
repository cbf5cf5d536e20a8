/**
 * What strangers may put into a skill: texts in which nothing is hidden, patterns that compile to something small and
 * match something, templates that parse and change nothing without having looked at it.
 */
import type { ProblemItem } from '../../contracts/problem.ts';
import { readPatterns } from '../../core/skills/pattern.ts';
import { findUnguardedChange } from '../../core/skills/template/guards.ts';
import { parseTemplate } from '../../core/skills/template/template.ts';
import { findTextFault } from '../../core/skills/text-rules.ts';
import { AppError } from '../../errors/app-error.ts';

/** Absent parts are not looked at. */
export interface UncheckedSkill {
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
 * @throws AppError `request_invalid` with everything that is wrong
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
  if (item !== undefined) throw new AppError('request_invalid', item.message, { errors: [item] });
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
  const unguarded = findUnguardedChange(parsing.template.operations, []);
  return unguarded === null ? [] : fault(unguarded);
}
