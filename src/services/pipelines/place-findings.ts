/** Gives findings their line and column, and their order. */
import type { Finding } from '../../contracts/pipeline.ts';
import { createLineTable } from './line-table.ts';
import { findSource, type SourceNode } from './source-node.ts';
import { locateInString } from './string-offset.ts';

export interface UnplacedFinding {
  readonly severity: Finding['severity'];
  readonly code: string;
  readonly pointer: string;
  /** Offset in the text, where it is known; else the pointer is looked up. */
  readonly at?: number;
  /** Offset in the string at the pointer. */
  readonly offset?: number | undefined;
  readonly message: string;
  readonly suggestion?: string | undefined;
}

const shownFindings = 1_000;

/** Findings about a key stand at the key, all others at the value. */
const aboutKeys: ReadonlySet<string> = new Set(['key_unknown', 'key_not_template', 'name_forbidden']);

export const createFindingPlacer = (
  text: string,
  root: SourceNode | null,
): ((findings: readonly UnplacedFinding[]) => Finding[]) => {
  const positionOf = createLineTable(text);
  return (findings) => {
    const placed = findings
      .map((finding) => ({ finding, at: finding.at ?? locate(finding, text, root) }))
      .sort((a, b) => a.at - b.at);
    const shown = new Map<string, Finding>();
    for (const { finding, at } of placed) {
      const key = JSON.stringify([finding.code, finding.pointer, at, finding.message]);
      if (!shown.has(key)) shown.set(key, toFinding(finding, positionOf(at)));
    }
    return withLimit([...shown.values()]);
  };
};

const locate = (
  { code, pointer, offset }: UnplacedFinding,
  text: string,
  root: SourceNode | null,
): number => {
  if (root === null) return 0;
  const { node, keyStart, exact } = findSource(root, pointer);
  if (offset && exact && typeof node.value === 'string') return locateInString(text, node, offset);
  return exact && aboutKeys.has(code) && keyStart !== null ? keyStart : node.start;
};

const toFinding = (
  { severity, code, pointer, message, suggestion }: UnplacedFinding,
  position: { readonly line: number; readonly column: number },
): Finding => ({
  severity,
  code,
  pointer,
  ...position,
  message,
  ...(suggestion === undefined ? {} : { suggestion }),
});

/** Errors are kept before warnings and notes; the order stays. */
const withLimit = (findings: Finding[]): Finding[] => {
  const more = findings.length - shownFindings;
  if (more <= 0) return findings;
  const errorsFirst = [
    ...findings.filter(({ severity }) => severity === 'error'),
    ...findings.filter(({ severity }) => severity !== 'error'),
  ];
  const kept = new Set(errorsFirst.slice(0, shownFindings));
  const message = `${more} more findings are not shown`;
  return [
    ...findings.filter((finding) => kept.has(finding)),
    { severity: 'note', code: 'findings_cut', pointer: '', message },
  ];
};
