/**
 * From the text of a definition to the definition, or to everything that is wrong with it: the text's
 * own traps, the contract's shape and the core's checks in one list, each with line and column.
 */
import { type Finding, PipelineDefinition } from '../../contracts/pipeline.ts';
import type { CapabilityOptions } from '../../core/pipeline/check-capabilities.ts';
import { checkDefinition } from '../../core/pipeline/check-definition.ts';
import { checkKeys } from '../../core/pipeline/check-keys.ts';
import type { DefinitionFinding } from '../../core/pipeline/finding.ts';
import { createFindingPlacer, type UnplacedFinding } from './place-findings.ts';
import { readJson } from './read-json.ts';
import { readYaml } from './read-yaml.ts';
import { salvageDefinition } from './salvage-definition.ts';
import { readShapeIssue } from './shape-findings.ts';
import { detectFormat } from './source-format.ts';
import type { SourceNode, SourceReading } from './source-node.ts';

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
}

export const readDefinition = (source: DefinitionText, options: CapabilityOptions): DefinitionReading => {
  const text = source.text.startsWith('\uFEFF') ? source.text.slice(1) : source.text;
  const reading: SourceReading =
    detectFormat(text, source.contentType) === 'json' ? readJson(text) : readYaml(text);
  const place = createFindingPlacer(text, reading.root);
  const problems = reading.problems.map((problem): UnplacedFinding => ({ severity: 'error', ...problem }));
  if (reading.root === null) return { definition: null, findings: place(problems) };
  const { definition, findings } = readShape(reading.root, text, options);
  const placed = place([...problems, ...checkKeys(reading.root.value), ...findings]);
  return {
    definition: placed.some(({ severity }) => severity === 'error') ? null : definition,
    findings: placed,
  };
};

interface ShapeReading {
  readonly definition: PipelineDefinition | null;
  readonly findings: readonly UnplacedFinding[];
}

const readShape = (root: SourceNode, text: string, options: CapabilityOptions): ShapeReading => {
  const parsed = PipelineDefinition.safeParse(root.value);
  if (parsed.success) return { definition: parsed.data, findings: checkDefinition(parsed.data, options) };
  const { issues } = parsed.error;
  const shape = issues
    .flatMap((issue) => readShapeIssue(issue, root, text))
    .map((finding): UnplacedFinding => ({ severity: 'error', ...finding }));
  const salvaged = salvageDefinition(root.value, issues);
  if (salvaged === null) return { definition: null, findings: shape };
  const { idsKnown, placeholders } = salvaged;
  const isOfTheAuthor = ({ code, pointer }: DefinitionFinding): boolean =>
    !placeholders.has(pointer) && (idsKnown || code !== 'step_unknown');
  return {
    definition: null,
    findings: [...shape, ...checkDefinition(salvaged.definition, options).filter(isOfTheAuthor)],
  };
};
