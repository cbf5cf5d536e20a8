/** What is known of the world around a definition when it is checked. What is absent is not checked. */
import type { StepDefinition } from '../../../contracts/pipeline.ts';
import type { Json, JsonObject } from '../../../contracts/primitives.ts';
import type { Effort } from '../../schema-types/overlap.ts';
import type { ValueType } from '../../schema-types/value-type.ts';

export interface DefinitionFacts {
  /** Names that are registered now; null skips the check. */
  readonly knownCapabilities: ReadonlySet<string> | null;
  /** An unregistered capability is an error instead of a warning. */
  readonly strict: boolean;
  /** Specs of which any may be that of the instance that is called; none = nothing is known. */
  readonly specsOf?: (step: StepDefinition) => readonly CapabilityForm[];
  /** Undefined = the reference was not looked up. */
  readonly pipelineOf?: (reference: string) => PipelineForm | undefined;
  /** What is wrong with a schema of the definition, beyond what core/registry finds; null = nothing. */
  readonly schemaFaultOf?: (schema: JsonObject) => string | null;
}

/** What a value at a pointer does wrong. */
export interface InputFault {
  readonly pointer: string;
  readonly message: string;
}

/**
 * What the value does wrong whatever stands in its holes; nothing when no work is left.
 * @param holes pointers of the parts that are not known
 * @param work what it takes is taken off
 */
export type FindInputFaults = (
  value: Json,
  holes: ReadonlySet<string>,
  work: Effort,
) => readonly InputFault[];

export interface CapabilityForm {
  readonly digest: string;
  readonly input: ValueType;
  readonly output: ValueType;
  readonly findInputFaults: FindInputFaults;
  /** It says that equal inputs have equal results. */
  readonly isDeterministic: boolean;
}

export type PipelineForm =
  | {
      readonly kind: 'found';
      /** The type of the job that a run of it takes. */
      readonly job: ValueType;
      readonly output: ValueType;
      readonly findInputFaults: FindInputFaults;
    }
  | {
      readonly kind: 'refused';
      readonly code: 'pipeline_unknown' | 'pipeline_cycle' | 'pipeline_depth' | 'pipeline_limit';
      readonly message: string;
      readonly suggestion?: string | undefined;
    };
