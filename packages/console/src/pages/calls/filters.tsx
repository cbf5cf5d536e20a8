/** The filters of the list of calls. Each is in the address. */
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { capabilitiesQuery } from '../../api/capabilities.ts';
import { useKeys } from '../../api/key-names.ts';
import { countFilters, describeFilters } from '../../calls/calls-path.ts';
import { type CallsSearch, callOutcomes } from '../../searches.ts';
import { Icon } from '../../shared/icon.tsx';
import { Button, buttonClass, fieldClass } from '../../shared/parts.tsx';
import { useIsNarrow } from '../../shared/use-is-narrow.ts';

interface FiltersProps {
  readonly search: CallsSearch;
  readonly onChange: (part: CallsSearch) => void;
  readonly onClear: () => void;
}

interface FilterChoice {
  readonly value: string;
  readonly name: string;
}

const texts = [
  ['user', 'User'],
  ['label', 'Label, as team=ads'],
  ['model', 'Model'],
  ['pipeline', 'Pipeline'],
  ['endpoint', 'Instance'],
  ['run_id', 'Run'],
] as const;

/** On a narrow screen they are folded behind the number of those that are set: the calls come first. */
export function CallFilters(props: FiltersProps): ReactElement {
  const isNarrow = useIsNarrow();
  if (!isNarrow) return <FilterFields {...props} />;
  return (
    <details className="mb-4">
      <summary className={`${buttonClass('plain')} mb-3 cursor-pointer list-none`}>
        <Icon name="chevron-down" size={15} /> {describeFilters(props.search)}
      </summary>
      <FilterFields {...props} />
    </details>
  );
}

function FilterFields({ search, onChange, onClear }: FiltersProps): ReactElement {
  const capabilities = useQuery(capabilitiesQuery()).data?.items ?? [];
  const keys = useKeys();
  const select = (name: keyof CallsSearch, label: string, choices: readonly FilterChoice[]): ReactElement => (
    <select
      aria-label={label}
      className={`${fieldClass} max-w-44`}
      value={search[name] ?? ''}
      onChange={({ target }) => onChange({ [name]: target.value || undefined })}
    >
      <option value="">{label}</option>
      {withChosen(choices, search[name]).map(({ value, name: shown }) => (
        <option key={value} value={value}>
          {shown}
        </option>
      ))}
    </select>
  );
  return (
    <div className="mb-4 flex flex-wrap items-center gap-2">
      {select(
        'capability',
        'Capability',
        capabilities.map(({ name }) => ({ value: name, name })),
      )}
      {select(
        'key',
        'Key',
        (keys ?? []).map(({ key_id, name }) => ({ value: key_id, name })),
      )}
      {select(
        'outcome',
        'Outcome',
        callOutcomes.map((value) => ({ value, name: value })),
      )}
      {select('direct', 'Run or direct', [
        { value: 'true', name: 'direct calls' },
        { value: 'false', name: 'calls of runs' },
      ])}
      {texts.map(([name, label]) => (
        <input
          key={`${name} ${search[name] ?? ''}`}
          data-filter={name === 'user' ? true : undefined}
          aria-label={label}
          placeholder={label}
          className={`${fieldClass} w-36`}
          defaultValue={search[name] ?? ''}
          onBlur={({ target }) => {
            const value = target.value.trim() || undefined;
            if (value !== search[name]) onChange({ [name]: value });
          }}
          onKeyDown={({ key, currentTarget }) => {
            if (key === 'Enter') currentTarget.blur();
          }}
        />
      ))}
      {(['since', 'until'] as const).map((name) => (
        <label key={name} className="flex items-center gap-1 text-sm text-muted">
          {name}
          <input
            type="date"
            className={fieldClass}
            value={(search[name] ?? '').slice(0, 10)}
            onChange={({ target }) => onChange({ [name]: target.value || undefined })}
          />
        </label>
      ))}
      {countFilters(search) > 0 ? (
        <Button look="bare" onClick={onClear}>
          Clear
        </Button>
      ) : null}
    </div>
  );
}

/** A link may name what the list does not hold. */
function withChosen(choices: readonly FilterChoice[], chosen: string | undefined): readonly FilterChoice[] {
  if (chosen === undefined || choices.some(({ value }) => value === chosen)) return choices;
  return [...choices, { value: chosen, name: chosen }];
}
