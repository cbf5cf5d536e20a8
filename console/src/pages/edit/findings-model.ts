/**
 * What is wrong with a text, of all that is known. Page and server make the same checks; the server knows every spec,
 * every pipeline and who is registered now, the page only the latest specs. So an answer of the server about this very
 * text stands in place of what the page found in it, and an answer about another text says nothing.
 */
import type { Finding } from '../../../../src/contracts/pipeline.ts';

export interface FoundIn {
  readonly text: string;
  readonly findings: readonly Finding[];
}

export type Verdict = 'nobody' | 'page' | 'asking' | 'server' | 'unreachable';

export interface Findings {
  readonly findings: readonly Finding[];
  /** Whose they are: of nobody yet, of the page alone, of both, or of the page while the server is asked or does not answer. */
  readonly verdict: Verdict;
}

export interface ServerAnswer {
  readonly found: FoundIn | null;
  readonly hasFailed: boolean;
}

/** @param isReadable whether there is something that the server could be asked about */
export function joinFindings(
  page: FoundIn,
  isReadable: boolean,
  { found, hasFailed }: ServerAnswer,
): Findings {
  // Of an empty text something is found: this one has not been read yet.
  if (page.text === '' && page.findings.length === 0) return { findings: [], verdict: 'nobody' };
  if (found !== null && found.text === page.text) return { findings: found.findings, verdict: 'server' };
  const verdict = !isReadable ? 'page' : hasFailed ? 'unreachable' : 'asking';
  return { findings: page.findings, verdict };
}

export function countErrors(findings: readonly Finding[]): number {
  return findings.filter(({ severity }) => severity === 'error').length;
}
