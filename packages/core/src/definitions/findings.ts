/**
 * Findings about a definition, for its author: the contract's issues in words, and the line, column and order of all
 * findings.
 */

import type { z } from 'zod';
import { durationFault } from '../contracts/duration-text.ts';
import {
  Concurrency,
  EscalatePolicy,
  EventStep,
  ForEach,
  PipelineDefinition,
  Repeat,
  RetryPolicy,
  ReviewStep,
  StepDefinition,
} from '../contracts/pipeline.ts';
import type { Finding } from '../contracts/pipeline-answers.ts';
import type { Json } from '../contracts/primitives.ts';
import { refuseExpression } from '../definition/checks/finding.ts';
import { delimiters } from '../expression/language.ts';
import { nameType } from '../json/issue-words.ts';
import { extendPointer, isList, jsonTypeOf } from '../json/values.ts';
import { createNameSuggester, describeUnknownKey } from '../nearest-name.ts';
import { createLineTable, findSource, locateInString, type SourceNode } from './source/source-node.ts';

export interface UnplacedFinding {
  readonly severity: Finding['severity'];
  readonly code: string;
  readonly pointer: string;
  /** Offset in the text, if known; otherwise the pointer is looked up. */
  readonly at?: number;
  /** Offset in the string at the pointer. */
  readonly offset?: number | undefined;
  readonly message: string;
  readonly suggestion?: string | undefined;
}

const shownFindings = 1_000;
/** Number of findings at one place that are compared. */
const comparedFindings = 100;

/** Findings about a key are placed at the key, all others at the value. */
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

/** Whether this finding repeats an earlier one at the same place. */
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

/** Keeps errors before warnings and notes, in their order. */
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

// The contract's issues about the shape of a definition, in words for its author.

export const shapeCodes = ['key_missing', 'key_unknown', 'type_invalid', 'value_invalid'] as const;

interface ShapeFinding {
  readonly code: (typeof shapeCodes)[number];
  readonly pointer: string;
  readonly message: string;
  readonly suggestion?: string | undefined;
}

type ShapeIssue = z.core.$ZodIssue;

/** @param text the source, for suggestions that repeat the author's text */
export function readShapeIssue(issue: ShapeIssue, root: SourceNode, text: string): ShapeFinding[] {
  const pointer = extendPointer('', ...issue.path.map(String));
  if (issue.code === 'unrecognized_keys') return readUnknownKeys(issue, pointer);
  const { node, exact } = findSource(root, pointer);
  if (!exact) return [readMissing(issue.path.at(-1), pointer)];
  return [readValueIssue(issue, { pointer, node, text })];
}

/** As `readShapeIssue`; names a key of a definition that was given an expression and takes none. */
export function readDefinitionIssue(issue: ShapeIssue, root: SourceNode, text: string): ShapeFinding[] {
  const findings = readShapeIssue(issue, root, text);
  const key = issue.path.findLast((part) => typeof part === 'string');
  if (key === undefined || templateKeys.has(key)) return findings;
  return findings.map((finding) => {
    const { node, exact } = findSource(root, finding.pointer);
    const isGiven = exact && typeof node.value === 'string' && node.value.includes(delimiters.open);
    return isGiven ? { ...finding, message: `${refuseExpression(key)}; ${finding.message}` } : finding;
  });
}

/** The keys whose strings are templates. */
const templateKeys: ReadonlySet<string> = new Set(['input', 'items', 'key', 'output', 'set', 'when']);

function readMissing(key: PropertyKey | undefined, pointer: string): ShapeFinding {
  return typeof key === 'number'
    ? { code: 'value_invalid', pointer, message: `the list has no item ${key + 1}, which is required` }
    : { code: 'key_missing', pointer, message: `${JSON.stringify(key)} is required` };
}

/** Bounds and forms in words that report what was seen, where the contract has no words of its own. */
export function wordShape(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code !== 'too_small' && issue.code !== 'too_big') return undefined;
  const { input, inclusive = true } = issue;
  const isLeast = issue.code === 'too_small';
  const bound = isLeast ? issue.minimum : issue.maximum;
  const limit = inclusive
    ? `${isLeast ? 'at least' : 'at most'} ${bound}`
    : `${isLeast ? 'more' : 'less'} than ${bound}`;
  if (typeof input === 'number') return `is ${input}; ${limit} is allowed`;
  if (typeof input === 'string') return `has ${input.length} characters; ${limit} are allowed`;
  return isList(input as Json)
    ? `has ${(input as readonly Json[]).length} items; ${limit} are allowed`
    : undefined;
}

interface IssueOrigin {
  readonly pointer: string;
  readonly node: SourceNode;
  readonly text: string;
}

function readValueIssue(issue: ShapeIssue, origin: IssueOrigin): ShapeFinding {
  const { pointer, node } = origin;
  if (issue.code === 'invalid_type') return readWrongType(issue, origin);
  if (issue.code === 'invalid_value') return readWrongValue(issue, pointer, node.value);
  return { code: 'value_invalid', pointer, message: messageOfIssue(issue) };
}

/** An issue about a key of a record has its reason inside. */
export function messageOfIssue(issue: ShapeIssue): string {
  return (issue.code === 'invalid_key' ? issue.issues[0]?.message : undefined) ?? issue.message;
}

function readUnknownKeys(
  issue: Extract<ShapeIssue, { code: 'unrecognized_keys' }>,
  pointer: string,
): ShapeFinding[] {
  const known = knownKeys(issue.path);
  const suggest = createNameSuggester(known);
  return issue.keys.map((key) => ({
    code: 'key_unknown',
    pointer: extendPointer(pointer, key),
    message: describeUnknownKey(key, known),
    suggestion: suggest(key),
  }));
}

const partShapes: ReadonlyMap<PropertyKey, object> = new Map<PropertyKey, object>([
  ['concurrency', Concurrency.shape],
  ['escalate', EscalatePolicy.shape],
  ['for_each', ForEach.shape],
  ['repeat', Repeat.shape],
  ['retry', RetryPolicy.shape],
  ['review', ReviewStep.shape],
  ['event', EventStep.shape],
]);

function knownKeys(path: readonly PropertyKey[]): string[] {
  const last = path.at(-1);
  if (last === undefined) return Object.keys(PipelineDefinition.shape);
  const part = partShapes.get(last);
  if (part !== undefined) return Object.keys(part);
  if (path[0] === 'defaults') return Object.keys(PipelineDefinition.shape.defaults.unwrap().shape);
  return Object.keys(StepDefinition.shape);
}

function readWrongType(
  issue: Extract<ShapeIssue, { code: 'invalid_type' }>,
  { pointer, node: { value, start, end }, text }: IssueOrigin,
): ShapeFinding {
  const isScalar = typeof value === 'number' || typeof value === 'boolean';
  const written = text.slice(start, end).trim();
  const suggestion =
    issue.message === durationFault
      ? typeof value === 'number' && value >= 0
        ? `for seconds, write ${written}s`
        : undefined
      : issue.expected === 'string' && isScalar
        ? `quote it: ${JSON.stringify(written)}`
        : undefined;
  return {
    code: 'type_invalid',
    pointer,
    message: `expected ${nameType(issue.expected)}, found ${describe(jsonTypeOf(value) ?? 'nothing', value)}`,
    suggestion,
  };
}

function describe(type: string, value: Json): string {
  return typeof value === 'number' ? `the number ${value}` : nameType(type);
}

function readWrongValue(
  issue: Extract<ShapeIssue, { code: 'invalid_value' }>,
  pointer: string,
  value: Json,
): ShapeFinding {
  const allowed = issue.values.map(String);
  return {
    code: 'value_invalid',
    pointer,
    message: `expected one of ${allowed.join(', ')}`,
    suggestion: typeof value === 'string' ? createNameSuggester(allowed)(value) : undefined,
  };
}

/** Keys with their descriptions. */
export type KeyDocs = Readonly<Record<string, string>>;

export interface DefinitionKeys {
  readonly pipeline: KeyDocs;
  readonly step: KeyDocs;
}

function docsOf(shape: Readonly<Record<string, { readonly description?: string | undefined }>>): KeyDocs {
  return Object.fromEntries(Object.entries(shape).map(([key, { description = '' }]) => [key, description]));
}

/** The keys of a definition and of its steps as the contract describes them, for editors. */
export function describeKeys(): DefinitionKeys {
  return { pipeline: docsOf(PipelineDefinition.shape), step: docsOf(StepDefinition.shape) };
}
