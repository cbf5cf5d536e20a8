import type { Skill } from '@capstan/core/contracts/skill';
import { confidenceRules, lowerBound } from '@capstan/core/skills/confidence';
import type { ReactElement } from 'react';

/** The share of uses that helped; the mark is the bound that ranks it, which few uses keep low. */
export function ConfidenceBar({ skill }: { readonly skill: Skill }): ReactElement {
  const { confidence, success_count, failure_count } = skill;
  const bound = lowerBound(skill);
  const isTrusted = bound >= confidenceRules.instruction;
  return (
    <span
      className="flex items-center gap-2"
      title={`${success_count} helped, ${failure_count} did not; ranked by ${Math.round(bound * 100)} %, ${isTrusted ? 'given as an instruction' : 'given as a hint'}`}
    >
      <span className="relative h-1.5 w-20 overflow-hidden rounded-full bg-quiet-soft">
        <span
          className={`block h-full ${isTrusted ? 'bg-done' : 'bg-waiting'}`}
          style={{ width: `${confidence * 100}%` }}
        />
        <span className="absolute inset-y-0 w-0.5 bg-text" style={{ left: `${bound * 100}%` }} />
      </span>
      <span className="figure text-xs text-muted">
        {success_count} of {success_count + failure_count}
      </span>
    </span>
  );
}
