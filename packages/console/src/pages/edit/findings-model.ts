/**
 * Joins the findings of page and server. Both make the same checks; the server knows every spec, every pipeline and the
 * registered instances, the page only the latest specs. So the server's answer about this very text replaces the page's
 * findings, and an answer about another text is ignored.
 */
import type { Finding } from '@capstan/core/contracts/pipeline-answers';

export interface FoundIn {
  readonly text: string;
  readonly findings: readonly Finding[];
}

export type Verdict = 'nobody' | 'page' | 'asking' | 'server' | 'unreachable';

export interface Findings {
  readonly findings: readonly Finding[];
  /** Their source: none yet, the page alone, both, or the page while the server has not answered. */
  readonly verdict: Verdict;
}

export interface ServerAnswer {
  readonly found: FoundIn | null;
  readonly hasFailed: boolean;
}

/** @param isReadable whether the text can be sent to the server */
export function joinFindings(
  page: FoundIn,
  isReadable: boolean,
  { found, hasFailed }: ServerAnswer,
): Findings {
  // An empty text has findings, so this one has not been read yet.
  if (page.text === '' && page.findings.length === 0) return { findings: [], verdict: 'nobody' };
  if (found !== null && found.text === page.text) return { findings: found.findings, verdict: 'server' };
  const verdict = !isReadable ? 'page' : hasFailed ? 'unreachable' : 'asking';
  return { findings: page.findings, verdict };
}

const mostShown = 50;

interface ShownFinding {
  /** Also of two equal findings each has its own; with one for both, a list keeps a row of the previous text. */
  readonly key: string;
  readonly finding: Finding;
}

export function toShownFindings(findings: readonly Finding[]): readonly ShownFinding[] {
  return findings
    .slice(0, mostShown)
    .map((finding, at) => ({ key: `${at} ${finding.pointer} ${finding.message}`, finding }));
}

export function countErrors(findings: readonly Finding[]): number {
  return findings.filter(({ severity }) => severity === 'error').length;
}
