/**
 * What the checks of a definition report: a contract `Finding` that is not yet placed in a source text.
 * Codes are stable; messages are for people.
 */
import type { Finding } from '../../contracts/pipeline.ts';
import type { ExpressionErrorCode } from '../expression/errors.ts';

export type FindingCode =
  | ExpressionErrorCode
  | 'capability_unknown'
  | 'cycle'
  | 'duration_out_of_range'
  | 'escalation_levels_swapped'
  | 'escalation_unused'
  | 'expression_own_step'
  | 'field_unknown'
  | 'key_not_template'
  | 'review_unused'
  | 'root_unavailable'
  | 'semver_range_invalid'
  | 'step_duplicate'
  | 'step_self_dependency'
  | 'step_unknown';

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
