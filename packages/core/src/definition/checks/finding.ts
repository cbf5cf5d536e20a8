/**
 * The facts that the checks of a definition use, and the findings that they report. A finding is a contract `Finding`
 * without its position in a source text. Codes are stable; messages are for people.
 */
import type { StepDefinition } from '../../contracts/pipeline.ts';
import type { Finding } from '../../contracts/pipeline-answers.ts';
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import type { Effort, ValueType } from '../../schema-types/value-type.ts';
import type { SecretReceivers, SizedSecret } from '../../secrets/receivers.ts';

export const findingCodes = [
  'cache_unused',
  'capability_unknown',
  'comparison_constant',
  'cycle',
  'dispatch_conflict',
  'duration_out_of_range',
  'edges_limit',
  'escalation_levels_swapped',
  'escalation_unused',
  'expression_limit',
  'expression_own_step',
  'expression_syntax',
  'expression_unused',
  'field_unknown',
  'filter_unknown',
  'input_invalid',
  'items_limit',
  'key_not_applicable',
  'key_not_template',
  'kind_missing',
  'kind_several',
  'list_limit',
  'name_forbidden',
  'operand_invalid',
  'path_invalid',
  'path_optional',
  'path_undescribed',
  'path_unknown',
  'pattern_not_enforced',
  'pipeline_cycle',
  'pipeline_depth',
  'pipeline_limit',
  'pipeline_unknown',
  'property_missing',
  'property_unknown',
  'race_conflict',
  'race_shared',
  'race_unreachable',
  'repeat_conflict',
  'repeat_useless',
  'retry_conflict',
  'retry_unreachable',
  'review_unused',
  'root_unavailable',
  'root_unknown',
  'run_if_unused',
  'schema_invalid',
  'secret_misplaced',
  'secret_not_allowed',
  'secret_unknown',
  'secrets_too_large',
  'semver_range_invalid',
  'affinity_invalid',
  'step_duplicate',
  'step_may_be_skipped',
  'step_never_runs',
  'step_self_dependency',
  'step_unknown',
  'timeout_unreachable',
  'type_mismatch',
  'types_limit',
  'version_conflict',
] as const;

export type FindingCode = (typeof findingCodes)[number];

export interface DefinitionFinding {
  readonly severity: Finding['severity'];
  readonly code: FindingCode;
  /** JSON Pointer into the definition. */
  readonly pointer: string;
  /** Position in the string at the pointer, in UTF-16 units. */
  readonly offset?: number | undefined;
  readonly message: string;
  readonly suggestion?: string | undefined;
}

/** For a key whose text is never a template. */
export function refuseExpression(key: string): string {
  return `${key} takes no expression`;
}

// Known facts about the environment of a definition during a check. Absent facts are not checked.

export interface DefinitionFacts {
  /** Names that are registered now; null skips the check. */
  readonly knownCapabilities: ReadonlySet<string> | null;
  /** An unregistered capability is an error instead of a warning. */
  readonly strict: boolean;
  /** Specs of the instances that may be called; empty = nothing is known. */
  readonly specsOf?: (step: StepDefinition) => readonly CapabilityForm[];
  /** Undefined = the reference was not looked up. */
  readonly pipelineOf?: (reference: string) => PipelineForm | undefined;
  /** The secrets of the project, by name; undefined skips the check. */
  readonly secrets?: ReadonlyMap<string, Pick<SecretReceivers, 'capabilities'> & SizedSecret> | undefined;
  /** The job of the run that is planned; undefined: any. */
  readonly job?: JsonObject | undefined;
  /** What an item of a step with `for_each` took before, on average; undefined: nothing is known. */
  readonly itemBytesOf?: ((stepId: string) => FormerItems | undefined) | undefined;
  /** The fault of a schema in the definition, beyond what core/registry finds; null = none. */
  readonly schemaFaultOf?: (schema: JsonObject) => string | null;
}

/** Items of a step in an earlier run. */
export interface FormerItems {
  readonly run_id: string;
  /** Of one item as JSON text, on average. */
  readonly bytes: number;
}

/** A fault of a value, at a pointer. */
export interface InputFault {
  readonly pointer: string;
  readonly message: string;
}

/**
 * Faults of a value that hold whatever its holes contain; none when the work is used up.
 * @param holes pointers of the unknown parts
 * @param work is reduced by the work that this takes
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
  /** Its spec states that equal inputs have equal results. */
  readonly isDeterministic: boolean;
}

export type PipelineForm =
  | {
      readonly kind: 'found';
      /** The type of the job that its runs accept. */
      readonly job: ValueType;
      readonly output: ValueType;
      readonly findInputFaults: FindInputFaults;
    }
  | {
      readonly kind: 'refused';
      readonly code:
        | 'pipeline_unknown'
        | 'pipeline_cycle'
        | 'pipeline_depth'
        | 'pipeline_limit'
        | 'version_conflict';
      readonly message: string;
      readonly suggestion?: string | undefined;
    };
