/** Requests of the page to the worker, and its answers, joined by ids. */
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Finding } from '@capstan/core/contracts/pipeline-answers';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { DefinitionKeys } from '@capstan/core/definitions/findings';
import type { MockInstance } from '@capstan/core/mock-run/mocks';
import type { Difference, LocalResult } from '@capstan/core/mock-run/run-locally';
import type { DrawnGraph } from '../graph/definition-graph.ts';

export interface LiveSpec {
  readonly description: string;
  readonly input: JsonObject;
  readonly output: JsonObject;
  /** The live capabilities, in the form of mocks. */
  readonly instances: MockInstance[];
}

/** The live capabilities by name. */
export type LiveSpecs = Readonly<Record<string, LiveSpec>>;

export type WorkerQuestion =
  | { readonly id: number; readonly kind: 'keys' }
  | { readonly id: number; readonly kind: 'check'; readonly text: string; readonly specs: LiveSpecs }
  | {
      readonly id: number;
      readonly kind: 'try';
      readonly text: string;
      readonly mocks: string;
      readonly job: JsonObject;
      readonly specs: LiveSpecs;
      readonly pipelines: readonly PipelineDefinition[];
    };

export interface CheckedText {
  readonly text: string;
  /** Whether the text has the shape of a definition, valid or not. */
  readonly isReadable: boolean;
  readonly findings: readonly Finding[];
  /** Null while a finding is an error. */
  readonly definition: PipelineDefinition | null;
  readonly graph: DrawnGraph | null;
}

export interface Tried {
  readonly result: LocalResult | null;
  /** Parts that the mocks, the job or the definition lack for a run. */
  readonly problems: readonly string[];
  /** The result of the mocks' expectations; null when there are none. */
  readonly differences: readonly Difference[] | null;
}

export type WorkerAnswer =
  | { readonly id: number; readonly kind: 'keys'; readonly keys: DefinitionKeys }
  | ({ readonly id: number; readonly kind: 'check' } & CheckedText)
  | ({ readonly id: number; readonly kind: 'try' } & Tried);
