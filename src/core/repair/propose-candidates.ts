import type { Broken, Candidate } from './candidate.ts';
import { settleUnknownKey, supplyKey } from './change-keys.ts';
import { clampNumber } from './clamp-number.ts';
import { coerceValue } from './coerce-value.ts';
import { chooseAllowed, tidyFormat, trimText } from './respell-value.ts';
import type { SchemaFinding } from './schema-finding.ts';

/** What might cure a finding; each is one operation. */
export function proposeCandidates(broken: Broken, finding: SchemaFinding): readonly Candidate[] {
  switch (finding.keyword) {
    case 'required':
    case 'dependentRequired':
      return supplyKey(broken, finding);
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return settleUnknownKey(broken, finding);
    case 'type':
      return coerceValue(broken, finding);
    case 'minimum':
    case 'maximum':
    case 'exclusiveMinimum':
    case 'exclusiveMaximum':
    case 'multipleOf':
      return clampNumber(broken, finding);
    case 'enum':
    case 'const':
      return chooseAllowed(broken, finding);
    case 'format':
      return tidyFormat(broken, finding);
    case 'pattern':
      return trimText(broken, finding);
    default:
      return [];
  }
}
