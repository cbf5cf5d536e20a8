/**
 * What the checks of a definition report: a contract `Finding` that is not yet placed in a source text.
 * Codes are stable; messages are for people.
 */
import type { Finding } from '../../../contracts/pipeline.ts';

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
  'field_unknown',
  'filter_unknown',
  'input_invalid',
  'items_limit',
  'key_not_applicable',
  'key_not_template',
  'kind_missing',
  'kind_several',
  'name_forbidden',
  'operand_invalid',
  'path_invalid',
  'path_optional',
  'path_undescribed',
  'path_unknown',
  'pipeline_cycle',
  'pipeline_depth',
  'pipeline_limit',
  'pipeline_unknown',
  'property_missing',
  'property_unknown',
  'review_unused',
  'root_unavailable',
  'root_unknown',
  'run_if_unused',
  'schema_invalid',
  'semver_range_invalid',
  'step_duplicate',
  'step_may_be_skipped',
  'step_never_runs',
  'step_self_dependency',
  'step_unknown',
  'timeout_unreachable',
  'type_mismatch',
  'types_limit',
] as const;

export type FindingCode = (typeof findingCodes)[number];

export interface DefinitionFinding {
  readonly severity: Finding['severity'];
  readonly code: FindingCode;
  /** JSON Pointer into the definition. */
  readonly pointer: string;
  /** Where in the string at the pointer, in UTF-16 units. */
  readonly offset?: number | undefined;
  readonly message: string;
  readonly suggestion?: string | undefined;
}
