import { type ReactElement, useState } from 'react';
import { DecisionView } from '../../../decision/decision-view.tsx';
import { EmptyState, fieldClass } from '../../../shared/parts.tsx';
import type { StepTabProps } from './step-tab-props.ts';

export function DecisionTab({ step }: StepTabProps): ReactElement {
  const [chosen, setChosen] = useState<string | null>(null);
  const attempt = step.attempts.find(({ attempt_id }) => attempt_id === chosen) ?? step.attempts.at(-1);
  if (attempt === undefined) {
    return (
      <EmptyState title="No routing decision yet">
        Who was considered, and why one was chosen, shows here.
      </EmptyState>
    );
  }
  return (
    <>
      {step.attempts.length < 2 ? null : (
        <select
          aria-label="Attempt"
          className={`${fieldClass} mb-3`}
          value={attempt.attempt_id}
          onChange={({ target }) => setChosen(target.value)}
        >
          {step.attempts.map(({ attempt_id }, index) => (
            <option key={attempt_id} value={attempt_id}>
              Attempt {index + 1}
            </option>
          ))}
        </select>
      )}
      {attempt.decision === null ? (
        <EmptyState title="No longer kept">
          Why instances were chosen is kept for a shorter time than runs.
        </EmptyState>
      ) : (
        <DecisionView key={attempt.attempt_id} decision={attempt.decision} />
      )}
    </>
  );
}
