/**
 * Pipelines that run pipelines: what a reference leads to, followed through stored definitions. A run may start runs
 * five deep; one that leads back to itself would never end.
 */
import { deepestSubRun } from '../../../contracts/bounds.ts';
import type { PipelineForm } from './definition-facts.ts';

export interface PipelineNode {
  readonly pipeline: string;
  readonly version: string;
  /** The pipelines that its steps run, as they are written. */
  readonly references: readonly string[];
}

type Refused = Extract<PipelineForm, { kind: 'refused' }>;

/**
 * @param root the definition that is checked: it counts as stored, and as the latest of its name
 * @param nodeOf undefined for what is not stored
 * @returns what is wrong with a reference of the root, or null
 */
export function createReferenceJudge(
  root: PipelineNode,
  nodeOf: (reference: string) => PipelineNode | undefined,
): (reference: string) => Refused | null {
  const judged = new Map<string, Refused | null>();

  const judge = (reference: string, path: readonly string[]): Refused | null => {
    const node = isOf(root, reference) ? root : nodeOf(reference);
    if (node === undefined) return unknown(reference, path);
    const name = nameOf(node);
    if (path.includes(name)) return cycle([...path, name]);
    if (path.length > deepestSubRun) return tooDeep([...path, name]);
    const key = `${path.length} ${name}`;
    const before = judged.get(key);
    if (before !== undefined) return before;
    let fault: Refused | null = null;
    for (const below of node.references) {
      fault = judge(below, [...path, name]);
      if (fault !== null) break;
    }
    judged.set(key, fault);
    return fault;
  };

  return (reference) => judge(reference, [nameOf(root)]);
}

function nameOf({ pipeline, version }: PipelineNode): string {
  return `${pipeline}@${version}`;
}

function isOf({ pipeline, version }: PipelineNode, reference: string): boolean {
  return reference === `${pipeline}@${version}` || reference === `${pipeline}@latest`;
}

function unknown(reference: string, path: readonly string[]): Refused {
  return {
    kind: 'refused',
    code: 'pipeline_unknown',
    message:
      path.length === 1
        ? `there is no pipeline ${reference}`
        : `there is no pipeline ${reference}, which ${path.at(-1)} runs`,
  };
}

function cycle(path: readonly string[]): Refused {
  return {
    kind: 'refused',
    code: 'pipeline_cycle',
    message: `each of these pipelines runs the next: ${path.join(' -> ')}`,
  };
}

function tooDeep(path: readonly string[]): Refused {
  return {
    kind: 'refused',
    code: 'pipeline_depth',
    message: `pipelines run pipelines at most ${deepestSubRun} deep: ${path.join(' -> ')}`,
  };
}
