/**
 * Reads the text of a definition into the definition, or into all its faults: problems of the text, the contract's
 * shape and the core's checks in one list, each with line and column.
 */
import type { z } from 'zod';
import { PipelineDefinition } from '../contracts/pipeline.ts';
import type { Finding } from '../contracts/pipeline-answers.ts';
import type { Json } from '../contracts/primitives.ts';
import { checkInPieces, checkKeys } from '../definition/checks/check-definition.ts';
import type { DefinitionFacts, DefinitionFinding } from '../definition/checks/finding.ts';
import { type AnalysedDefinition, analyseInPieces } from '../definition/compile.ts';
import { extendPointer, isList, isPlainObject } from '../json/values.ts';
import { finish, type Pieces } from '../pieces.ts';
import { createFindingPlacer, readDefinitionIssue, type UnplacedFinding, wordShape } from './findings.ts';
import { readJson } from './source/read-json.ts';
import { readYaml } from './source/read-yaml.ts';
import { detectFormat, type SourceNode, type SourceReading } from './source/source-node.ts';

interface SalvagedDefinition {
  readonly definition: PipelineDefinition;
  /** False when a step has no readable id, so that unknown names cannot be reported. */
  readonly idsKnown: boolean;
  /** Pointers of placeholders; findings there do not concern the author's text. */
  readonly placeholders: ReadonlySet<string>;
}

function placeholderId(index: number): string {
  return `_unreadable_step_${index}`;
}

/**
 * Makes a malformed definition checkable, so that the other findings are reported in the same response. Parts that the
 * contract refused are left out, or replaced by a placeholder where they are required. A salvaged definition is never
 * run or stored.
 */
function salvageDefinition(value: Json, issues: readonly z.core.$ZodIssue[]): SalvagedDefinition | null {
  if (!isPlainObject(value) || !isList(value.steps ?? null)) return null;
  const copy: Salvage = {
    root: { ...value },
    steps: (value.steps as readonly Json[]).map((step) => (isPlainObject(step) ? { ...step } : {})),
    placeholders: new Set(),
  };
  for (const issue of issues) for (const path of brokenPaths(issue)) mend(copy, path);
  const parsed = PipelineDefinition.safeParse({ ...copy.root, steps: copy.steps });
  if (!parsed.success) return null;
  const idsKnown = !copy.steps.some((_, index) => copy.placeholders.has(`/steps/${index}/id`));
  return { definition: parsed.data, idsKnown, placeholders: copy.placeholders };
}

interface Salvage {
  readonly root: Record<string, Json>;
  readonly steps: Record<string, Json>[];
  readonly placeholders: Set<string>;
}

type KeyPath = readonly PropertyKey[];

function brokenPaths(issue: z.core.$ZodIssue): KeyPath[] {
  return issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key]) : [issue.path];
}

function mend(copy: Salvage, [top, index, key]: KeyPath): void {
  if (top === 'steps') mendStep(copy, Number(index), key);
  else if (top === 'pipeline' || top === 'version') {
    copy.root[top] = 'unreadable';
    copy.placeholders.add(`/${top}`);
  } else delete copy.root[String(top)];
}

/** The keys that determine the kind of a step. */
const kindKeys: ReadonlySet<PropertyKey> = new Set([
  'capability',
  'pipeline',
  'wait',
  'review',
  'event',
  'set',
]);

/** @param key undefined when the step is not an object */
function mendStep(copy: Salvage, index: number, key: PropertyKey | undefined): void {
  const step = copy.steps[index];
  if (step === undefined) return;
  if (key === undefined || key === 'id') putPlaceholder(copy, index, 'id');
  if (key === 'id') return;
  if (key !== undefined) delete step[String(key)];
  if (key === 'for_each') step.for_each = { items: [] }; // its input may refer to an item
  if (key === 'repeat') step.repeat = { until: 'true', max: 1 }; // its input may refer to a round
  if (key === 'depends_on') delete step.run_if;
  const isKindless = ![...kindKeys].some((kind) => Object.hasOwn(step, kind));
  if (key === undefined || (kindKeys.has(key) && isKindless)) {
    putPlaceholder(copy, index, 'capability');
  }
}

function putPlaceholder({ steps, placeholders }: Salvage, index: number, name: 'id' | 'capability'): void {
  const step = steps[index];
  if (step === undefined) return;
  step[name] = name === 'id' ? placeholderId(index) : 'unreadable';
  placeholders.add(`/steps/${index}/${name}`);
}

/** NUL and lone surrogates: YAML and JSON escapes can write them, Postgres cannot store them. */
const unstorable = /[\0\p{Surrogate}]/u;

/** Pointer of the first text that cannot be stored, or of the object with such a key; null when there is none. */
export function findUnstorableText(value: Json): string | null {
  const path = findPath(value);
  return path === null ? null : extendPointer('', ...path.reverse());
}

/** Segments from the innermost outwards. */
function findPath(value: Json): string[] | null {
  if (typeof value === 'string') return unstorable.test(value) ? [] : null;
  if (typeof value !== 'object' || value === null) return null;
  for (const [key, below] of Object.entries(value)) {
    if (unstorable.test(key)) return [];
    const path = findPath(below);
    if (path !== null) {
      path.push(key);
      return path;
    }
  }
  return null;
}

export interface DefinitionText {
  readonly text: string;
  /** The media type it was sent with; null = detected from its first character. */
  readonly contentType: string | null;
}

export interface DefinitionReading {
  /** null when a finding is an error. */
  readonly definition: PipelineDefinition | null;
  /** By position, without duplicates; at most 1,000 and a note on the rest. */
  readonly findings: Finding[];
  /** The analysis of the definition. */
  readonly analysis: AnalysedDefinition | null;
}

/** A text with a known shape. */
interface OpenDefinition {
  /** The checkable definition, without the parts that the contract refused; null when nothing is checkable. */
  readonly definition: PipelineDefinition | null;
  /** @param facts null only without a definition */
  readonly check: (facts: DefinitionFacts | null) => Pieces<DefinitionReading>;
}

export function openDefinition(source: DefinitionText): OpenDefinition {
  const text = source.text.startsWith('\uFEFF') ? source.text.slice(1) : source.text;
  const reading: SourceReading =
    detectFormat(text, source.contentType) === 'json' ? readJson(text) : readYaml(text);
  const { root } = reading;
  const place = createFindingPlacer(text, root);
  const problems = [
    ...reading.problems.map((problem): UnplacedFinding => ({ severity: 'error', ...problem })),
    ...reading.warnings.map((problem): UnplacedFinding => ({ severity: 'warning', ...problem })),
  ];
  // These suppress all other findings: the shape that was read is not what the author meant.
  if (root === null || problems.some(({ code }) => code === 'yaml_syntax' || code === 'yaml_merge')) {
    const refused: DefinitionReading = { definition: null, findings: place(problems), analysis: null };
    return {
      definition: null,
      // biome-ignore lint/correctness/useYield: nothing is left to check
      *check() {
        return refused;
      },
    };
  }
  const { definition, findings, isSound, isOfTheAuthor } = readShape(root, text);
  return {
    definition,
    *check(facts) {
      const analysis = definition === null ? null : yield* analyseInPieces(definition);
      const isChecked = definition !== null && facts !== null && analysis !== null;
      const checked = isChecked ? yield* checkInPieces(definition, facts, analysis) : [];
      const told = [...checkText(root.value), ...checkKeys(root.value), ...checked.filter(isOfTheAuthor)];
      const placed = place([...problems, ...findings, ...told]);
      const isRefused = !isSound || placed.some(({ severity }) => severity === 'error');
      return isRefused
        ? { definition: null, findings: placed, analysis: null }
        : { definition, findings: placed, analysis };
    },
  };
}

export function readDefinition(source: DefinitionText, facts: DefinitionFacts): DefinitionReading {
  return finish(openDefinition(source).check(facts));
}

function checkText(value: Json): UnplacedFinding[] {
  const pointer = findUnstorableText(value);
  if (pointer === null) return [];
  const message = 'a text holds a NUL character or half of a surrogate pair';
  return [{ severity: 'error', code: 'text_invalid', pointer, message }];
}

interface ShapeReading {
  readonly definition: PipelineDefinition | null;
  readonly findings: readonly UnplacedFinding[];
  readonly isSound: boolean;
  readonly isOfTheAuthor: (finding: DefinitionFinding) => boolean;
}

function readShape(root: SourceNode, text: string): ShapeReading {
  const parsed = PipelineDefinition.safeParse(root.value, { error: wordShape });
  if (parsed.success) {
    return { definition: parsed.data, findings: [], isSound: true, isOfTheAuthor: () => true };
  }
  const { issues } = parsed.error;
  const findings = issues
    .flatMap((issue) => readDefinitionIssue(issue, root, text))
    .map((finding): UnplacedFinding => ({ severity: 'error', ...finding }));
  const salvaged = salvageDefinition(root.value, issues);
  if (salvaged === null) return { definition: null, findings, isSound: false, isOfTheAuthor: () => true };
  const { definition, idsKnown, placeholders } = salvaged;
  return {
    definition,
    findings,
    isSound: false,
    isOfTheAuthor: ({ code, pointer }) => !placeholders.has(pointer) && (idsKnown || code !== 'step_unknown'),
  };
}
