/** What the page asks of the worker, and what it answers. Ids join a question and its answer. */
import type { Finding, PipelineDefinition } from '../../../src/contracts/pipeline.ts';
import type { JsonObject } from '../../../src/contracts/primitives.ts';
import type { LocalResult } from '../../../src/mock-run/run-locally.ts';
import type { DrawnGraph } from '../graph/definition-graph.ts';

/** Input and output schema of a live capability, by name. */
export type LiveSpecs = Readonly<Record<string, { readonly input: JsonObject; readonly output: JsonObject }>>;

export type WorkerQuestion =
  | { readonly id: number; readonly kind: 'check'; readonly text: string; readonly specs: LiveSpecs }
  | {
      readonly id: number;
      readonly kind: 'try';
      readonly text: string;
      readonly mocks: string;
      readonly job: JsonObject;
      readonly specs: LiveSpecs;
    };

export interface CheckedText {
  readonly findings: readonly Finding[];
  /** Null while a finding is an error. */
  readonly definition: PipelineDefinition | null;
  readonly graph: DrawnGraph | null;
}

export interface Tried {
  readonly result: LocalResult | null;
  /** What the mocks, the job or the definition lack for a run. */
  readonly problems: readonly string[];
}

export type WorkerAnswer =
  | ({ readonly id: number; readonly kind: 'check' } & CheckedText)
  | ({ readonly id: number; readonly kind: 'try' } & Tried);
