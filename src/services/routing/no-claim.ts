/** What it means for a call that no instance took it. */
import type { ErrorCode } from '../../contracts/errors.ts';
import type { Json } from '../../contracts/primitives.ts';
import type { ClaimEnd } from './claim-instance.ts';

export interface NoClaim {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details: Json;
  /** Time does not cure it. */
  readonly isFinal: boolean;
}

export const explainNoClaim = ({ choice, decision, refusals }: ClaimEnd & { kind: 'none' }): NoClaim => {
  const details = { decision: decision as unknown as Json };
  if (choice.ranked.length > 0) {
    return { code: 'overloaded', message: decision.reason, details, isFinal: false };
  }
  const verdicts = new Set(choice.excluded.map(({ verdict }) => verdict));
  if (verdicts.has('input_invalid') && refusals.length > 0) {
    const findings = refusals.map(({ pointer, message }) => `${pointer || '/'} ${message}`);
    return {
      code: 'input_invalid',
      message: `the input does not match the input schema: ${[...new Set(findings)].join('; ')}`,
      details: { errors: refusals as unknown as Json, ...details },
      isFinal: true,
    };
  }
  if (verdicts.has('over_ceiling')) {
    return { code: 'ceiling_too_low', message: decision.reason, details, isFinal: true };
  }
  return { code: 'no_instance', message: decision.reason, details, isFinal: false };
};
