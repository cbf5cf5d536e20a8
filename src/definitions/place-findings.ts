/** Gives findings their line and column, and their order. */
import type { Finding } from '../contracts/pipeline.ts';
import { createLineTable } from './source/line-table.ts';
import { findSource, type SourceNode } from './source/source-node.ts';
import { locateInString } from './source/string-offset.ts';

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
/** At one place. */
const comparedFindings = 100;

/** Findings about a key stand at the key, all others at the value. */
const aboutKeys: ReadonlySet<string> = new Set([
  'key_not_applicable',
  'key_not_template',
  'key_unknown',
  'name_forbidden',
  'property_unknown',
]);

export function createFindingPlacer(
  text: string,
  root: SourceNode | null,
): (findings: readonly UnplacedFinding[]) => Finding[] {
  const positionOf = createLineTable(text);
  return (findings) => {
    const placed = findings
      .map((finding) => ({ finding, at: finding.at ?? locate(finding, text, root) }))
      .sort((a, b) => a.at - b.at);
    const different = placed.filter((one, index) => !isRepeated(one, index, placed));
    const kept = keepMost(different).map(({ finding, at }) => toFinding(finding, positionOf(at)));
    return different.length > kept.length ? [...kept, tellCut(different.length - kept.length)] : kept;
  };
}

interface PlacedFinding {
  readonly finding: UnplacedFinding;
  readonly at: number;
}

/** Whether the same is said at the same place before. */
function isRepeated(
  { finding, at }: PlacedFinding,
  index: number,
  placed: readonly PlacedFinding[],
): boolean {
  for (let before = index - 1; before >= 0; before--) {
    const other = placed[before];
    if (other === undefined || other.at !== at) return false;
    const { code, pointer, message } = other.finding;
    if (code === finding.code && pointer === finding.pointer && message === finding.message) return true;
    if (index - before > comparedFindings) return false;
  }
  return false;
}

function locate({ code, pointer, offset }: UnplacedFinding, text: string, root: SourceNode | null): number {
  if (root === null) return 0;
  const { node, keyStart, exact } = findSource(root, pointer);
  if (offset && exact && typeof node.value === 'string') return locateInString(text, node, offset);
  return exact && aboutKeys.has(code) && keyStart !== null ? keyStart : node.start;
}

function toFinding(
  { severity, code, pointer, message, suggestion }: UnplacedFinding,
  position: { readonly line: number; readonly column: number },
): Finding {
  return {
    severity,
    code,
    pointer,
    ...position,
    message,
    ...(suggestion === undefined ? {} : { suggestion }),
  };
}

/** Errors are kept before warnings and notes; the order stays. */
function keepMost(findings: readonly PlacedFinding[]): readonly PlacedFinding[] {
  if (findings.length <= shownFindings) return findings;
  const errorsFirst = [
    ...findings.filter(({ finding }) => finding.severity === 'error'),
    ...findings.filter(({ finding }) => finding.severity !== 'error'),
  ];
  const kept = new Set(errorsFirst.slice(0, shownFindings));
  return findings.filter((finding) => kept.has(finding));
}

function tellCut(more: number): Finding {
  return {
    severity: 'note',
    code: 'findings_cut',
    pointer: '',
    message: `${more} more findings are not shown`,
  };
}
