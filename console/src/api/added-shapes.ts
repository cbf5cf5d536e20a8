/** Shapes of the answers that only the page asks for. */

import type { PipelineDefinition } from '../../../src/contracts/pipeline.ts';
import type { Json, JsonObject } from '../../../src/contracts/primitives.ts';
import type { RunState } from '../../../src/contracts/run.ts';
import type { SchemaPointerError } from './schema-pointer-error.ts';

export interface DrawnStep {
  readonly id: string;
  readonly capability?: string;
  readonly pipeline?: string;
  readonly wait?: string;
  readonly review?: string;
  readonly for_each?: unknown;
}

export interface DrawnEdge {
  readonly from: string;
  readonly to: string;
}

export interface DrawnRun {
  readonly definition: PipelineDefinition;
  readonly steps: readonly DrawnStep[];
  readonly edges: readonly DrawnEdge[];
}

export interface TimelineTable {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Json[])[];
  readonly next_cursor: string | null;
}

export interface RunsInTime {
  readonly buckets: readonly {
    readonly at: string;
    readonly by_state: Readonly<Partial<Record<RunState, number>>>;
    readonly cost_usd: number;
  }[];
}

export interface DecisionRows {
  readonly items: readonly {
    readonly decision_id: string;
    readonly at: string;
    readonly run_id: string | null;
    readonly step_id: string | null;
    readonly chosen: string | null;
    readonly settled_usd: number | null;
    readonly duration_ms: number | null;
    readonly inputs: JsonObject;
  }[];
  readonly next_cursor: string | null;
}

export interface CostsInTime {
  readonly from: string;
  readonly to: string;
  readonly series: readonly {
    readonly name: string;
    readonly points: readonly (readonly [string, number])[];
  }[];
  readonly daily_limit_usd: number;
}

export interface WorthOfSkill {
  readonly uses: number;
  readonly saved_usd: number;
  readonly saved_ms: number;
  readonly reviews_avoided: number;
  readonly learnt: {
    readonly escalation_id: string;
    readonly run_id?: string;
    readonly step_id?: string;
    readonly error: string;
    readonly input: Json;
    readonly corrected: Json;
    readonly cost_usd: number;
    readonly duration_ms: number;
  } | null;
}

export interface CheckedInput {
  readonly valid: boolean;
  readonly errors: readonly SchemaPointerError[];
  readonly proposals: readonly { readonly input: Json; readonly source: string; readonly note?: string }[];
}
