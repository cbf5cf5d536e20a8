/**
 * From the text of a definition to the definition, or to everything that is wrong with it: the text's
 * own traps, the contract's shape and the core's checks in one list, each with line and column.
 */
import { type Finding, PipelineDefinition } from '../contracts/pipeline.ts';
import type { Json } from '../contracts/primitives.ts';
import { checkDefinition } from '../core/definition/checks/check-definition.ts';
import { checkKeys } from '../core/definition/checks/check-keys.ts';
import type { DefinitionFacts } from '../core/definition/checks/definition-facts.ts';
import type { DefinitionFinding } from '../core/definition/checks/finding.ts';
import { type AnalysedDefinition, analyseDefinition } from '../core/definition/step-graph.ts';
import { createFindingPlacer, type UnplacedFinding } from './place-findings.ts';
import { salvageDefinition } from './salvage-definition.ts';
import { readShapeIssue } from './shape-findings.ts';
import { readJson } from './source/read-json.ts';
import { readYaml } from './source/read-yaml.ts';
import { detectFormat } from './source/source-format.ts';
import type { SourceNode, SourceReading } from './source/source-node.ts';
import { findUnstorableText } from './storable-text.ts';

export interface DefinitionText {
  readonly text: string;
  /** The media type it was sent with; null = told by its first character. */
  readonly contentType: string | null;
}

export interface DefinitionReading {
  /** null when a finding is an error. */
  readonly definition: PipelineDefinition | null;
  /** By position, each once; at most 1,000 and a note on the rest. */
  readonly findings: Finding[];
  /** The analysis of the definition. */
  readonly analysis: AnalysedDefinition | null;
}

/** A text whose shape is known. */
export interface OpenDefinition {
  /** What can be checked: without what the contract refused, where that is possible at all. */
  readonly definition: PipelineDefinition | null;
  /** @param facts null only without a definition */
  readonly finish: (facts: DefinitionFacts | null) => DefinitionReading;
}

export function openDefinition(source: DefinitionText): OpenDefinition {
  const text = source.text.startsWith('\uFEFF') ? source.text.slice(1) : source.text;
  const reading: SourceReading =
    detectFormat(text, source.contentType) === 'json' ? readJson(text) : readYaml(text);
  const { root } = reading;
  const place = createFindingPlacer(text, root);
  const problems = reading.problems.map((problem): UnplacedFinding => ({ severity: 'error', ...problem }));
  if (root === null) {
    const refused = () => ({ definition: null, findings: place(problems), analysis: null });
    return { definition: null, finish: refused };
  }
  const { definition, findings, isSound, isOfTheAuthor } = readShape(root, text);
  return {
    definition,
    finish: (facts) => {
      const analysis = definition === null ? null : analyseDefinition(definition);
      const isChecked = definition !== null && facts !== null && analysis !== null;
      const checked = isChecked ? checkDefinition(definition, facts, analysis) : [];
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
  return openDefinition(source).finish(facts);
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
  const parsed = PipelineDefinition.safeParse(root.value);
  if (parsed.success) {
    return { definition: parsed.data, findings: [], isSound: true, isOfTheAuthor: () => true };
  }
  const { issues } = parsed.error;
  const findings = issues
    .flatMap((issue) => readShapeIssue(issue, root, text))
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
