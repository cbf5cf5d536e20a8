import type { Priority } from '@capstan/core/contracts/primitives';
import type { ReactElement } from 'react';
import { fieldClass } from '../../shared/parts.tsx';
import { describeInstances, instanceWords, type RerunPrices, type RunTerms } from './rerun-model.ts';

export interface RunTermsProps {
  readonly terms: RunTerms;
  /** The budget and priority of the repeated run, in words; absent for several runs. */
  readonly before?: { readonly budget: string; readonly priority: Priority };
  readonly prices?: RerunPrices;
  readonly onChange: (terms: RunTerms) => void;
}

/** Budget and priority of a new run. */
export function RunTermsFields({ terms, before, prices, onChange }: RunTermsProps): ReactElement {
  const former = (text: string | undefined): string =>
    text === undefined ? 'as before' : `as before (${text})`;
  return (
    <div className="mt-3 flex flex-col gap-2 text-sm">
      <label className="flex flex-wrap items-center gap-2">
        <span className="w-16">Budget</span>
        <select
          aria-label="Budget"
          className={fieldClass}
          value={terms.budget}
          onChange={({ target }) => onChange({ ...terms, budget: target.value as RunTerms['budget'] })}
        >
          <option value="before">{former(before?.budget)}</option>
          <option value="none">no budget</option>
          <option value="other">another one</option>
        </select>
        {terms.budget === 'other' ? (
          <input
            type="number"
            min="0"
            step="any"
            aria-label="Budget in USD"
            placeholder="USD"
            className={`${fieldClass} w-28`}
            value={terms.usd}
            onChange={({ target }) => onChange({ ...terms, usd: target.value })}
          />
        ) : null}
      </label>
      <label className="flex flex-wrap items-center gap-2">
        <span className="w-16">Instances</span>
        <select
          aria-label="Instances"
          className={`${fieldClass} min-w-0 max-w-full`}
          value={terms.priority}
          onChange={({ target }) => onChange({ ...terms, priority: target.value as RunTerms['priority'] })}
        >
          <option value="before">
            {before === undefined ? 'as before' : `as before: ${describeInstances(before.priority, prices)}`}
          </option>
          {(Object.keys(instanceWords) as Priority[]).map((one) => (
            <option key={one} value={one}>
              {describeInstances(one, prices)}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}
