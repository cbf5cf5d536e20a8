/** Which days, and by which groups: the address of the page, so that a view can be sent to others. */

import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type ReactElement, useEffect, useId, useState } from 'react';
import { scopedBudgetsQuery } from '../../api/money.ts';
import { type CostsSearch, costPeriods, groupings } from '../../searches.ts';
import { fieldClass } from '../../shared/parts.tsx';
import { useSettled } from '../../shared/use-settled.ts';
import { periodWords } from './model.ts';

interface CostControlProps {
  readonly search: CostsSearch;
  readonly change: (part: CostsSearch) => void;
}

export function CostControls({ search }: Pick<CostControlProps, 'search'>): ReactElement {
  const navigate = useNavigate({ from: '/costs' });
  const change = (part: CostsSearch): void => {
    void navigate({ search: (known) => ({ ...known, ...part }), replace: true });
  };
  const { by = 'capability', and, label, and_label } = search;
  return (
    <>
      <Days search={search} change={change} />
      <select
        aria-label="By"
        className={fieldClass}
        value={by}
        onChange={({ target }) =>
          change({ by: groupings.find((one) => one === target.value), label: undefined })
        }
      >
        {groupings.map((one) => (
          <option key={one} value={one}>
            by {one}
          </option>
        ))}
      </select>
      {by === 'label' ? (
        <LabelField label="Name of the label" name={label} onChange={(name) => change({ label: name })} />
      ) : null}
      <select
        aria-label="And by"
        className={fieldClass}
        value={and ?? ''}
        onChange={({ target }) =>
          change({ and: groupings.find((one) => one === target.value), and_label: undefined })
        }
      >
        <option value="">alone</option>
        {groupings
          .filter((one) => one !== by || one === 'label')
          .map((one) => (
            <option key={one} value={one}>
              × {one}
            </option>
          ))}
      </select>
      {and === 'label' ? (
        <LabelField
          label="Name of the second label"
          name={and_label}
          onChange={(name) => change({ and_label: name })}
        />
      ) : null}
    </>
  );
}

const anyDays = 'days';

function Days({ search: { period = 'week', from, to }, change }: CostControlProps): ReactElement {
  const today = new Date().toISOString().slice(0, 10);
  return (
    <>
      <select
        aria-label="Period"
        className={fieldClass}
        value={from === undefined ? period : anyDays}
        onChange={({ target }) =>
          change(
            target.value === anyDays
              ? { from: today, to: today, period: undefined }
              : { period: costPeriods.find((one) => one === target.value), from: undefined, to: undefined },
          )
        }
      >
        {costPeriods.map((one) => (
          <option key={one} value={one}>
            {periodWords[one]}
          </option>
        ))}
        <option value={anyDays}>from … to …</option>
      </select>
      {from === undefined ? null : (
        <>
          <DayField label="First day" day={from} onChange={(day) => change({ from: day })} />
          <DayField label="Last day" day={to ?? today} onChange={(day) => change({ to: day })} />
        </>
      )}
    </>
  );
}

interface DayFieldProps {
  readonly label: string;
  readonly day: string;
  readonly onChange: (day: string) => void;
}

/** Some browsers have an empty day while its parts are typed. */
function DayField({ label, day, onChange }: DayFieldProps): ReactElement {
  return (
    <input
      type="date"
      aria-label={label}
      className={fieldClass}
      min="2000-01-01"
      max="2099-12-31"
      defaultValue={day}
      onChange={({ target }) => {
        if (target.value >= '2000') onChange(target.value);
      }}
    />
  );
}

interface LabelFieldProps {
  readonly label: string;
  readonly name: string | undefined;
  readonly onChange: (name: string | undefined) => void;
}

/** Holds during typing; the names that budgets have are offered. */
function LabelField({ label, name = '', onChange }: LabelFieldProps): ReactElement {
  const list = useId();
  const [typed, setTyped] = useState(name);
  const settled = useSettled(typed.trim(), 300);
  const budgets = useQuery(scopedBudgetsQuery()).data?.items ?? [];
  const known = new Set(budgets.flatMap(({ scope }) => /^label:([^=]*)=/.exec(scope)?.[1] ?? []));
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a new text changes the address
  useEffect(() => {
    if (settled !== name) onChange(settled === '' ? undefined : settled);
  }, [settled]);
  return (
    <>
      <input
        aria-label={label}
        placeholder="team"
        className={`${fieldClass} w-28`}
        list={list}
        value={typed}
        onChange={({ target }) => setTyped(target.value)}
      />
      <datalist id={list}>
        {[...known].map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
    </>
  );
}
