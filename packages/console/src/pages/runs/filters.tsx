import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { pipelinesQuery } from '../../api/pipelines.ts';
import { awaitings, type RunsSearch, repeats, runStates } from '../../searches.ts';
import { Button, fieldClass } from '../../shared/parts.tsx';
import { SearchBox } from '../../shared/search-box.tsx';
import { awaitingWords, stateLooks } from '../../shared/state.ts';
import { spans } from './model.ts';

export interface RunFiltersProps {
  readonly search: RunsSearch;
  readonly onChange: (part: Partial<RunsSearch>) => void;
}

export function RunFilters({ search, onChange }: RunFiltersProps): ReactElement {
  const isAny = Object.values(search).some((value) => value !== undefined);
  return (
    <search className="scrolls mb-3 flex min-w-0 items-center gap-2 p-0.5 [scrollbar-width:none] *:shrink-0">
      <SearchBox
        label="Search runs by pipeline, id, label or error"
        placeholder="Id, label=value, error …"
        value={search.q}
        onChange={(q) => onChange({ q })}
      />
      <PipelineChoice chosen={search.pipeline} onChange={(pipeline) => onChange({ pipeline })} />
      <select
        aria-label="State"
        className={fieldClass}
        value={search.state ?? ''}
        onChange={({ target }) => onChange({ state: runStates.find((state) => state === target.value) })}
      >
        <option value="">any state</option>
        {runStates.map((state) => (
          <option key={state} value={state}>
            {stateLooks[state].word}
          </option>
        ))}
      </select>
      <select
        aria-label="Waiting for"
        className={fieldClass}
        value={search.awaiting ?? ''}
        onChange={({ target }) => onChange({ awaiting: awaitings.find((one) => one === target.value) })}
      >
        <option value="">any wait reason</option>
        {awaitings.map((one) => (
          <option key={one} value={one}>
            waiting for {awaitingWords[one]}
          </option>
        ))}
      </select>
      <select
        aria-label="Repeated"
        className={fieldClass}
        value={search.superseded ?? ''}
        onChange={({ target }) => onChange({ superseded: repeats.find((one) => one === target.value) })}
      >
        <option value="">repeated or not</option>
        <option value="none">not repeated yet</option>
        <option value="only">repeated by another run</option>
      </select>
      <select
        aria-label="When"
        className={fieldClass}
        value=""
        onChange={({ target }) => {
          const since = new Date(Date.now() - Number(target.value) * 3_600_000).toISOString();
          onChange({ since: target.value === 'all' ? undefined : since, until: undefined });
        }}
      >
        <option value="">
          {search.since === undefined ? 'any time' : `since ${search.since.slice(0, 16)}`}
        </option>
        <option value="all">any time</option>
        {spans.map(({ name, hours }) => (
          <option key={name} value={hours}>
            {name}
          </option>
        ))}
      </select>
      {search.label === undefined ? null : (
        <Chip name="label" value={search.label} onEnd={() => onChange({ label: undefined })} />
      )}
      {isAny ? (
        <Button look="bare" icon="x" onClick={() => onChange(nothing)}>
          Clear
        </Button>
      ) : null}
    </search>
  );
}

interface PipelineChoiceProps {
  readonly chosen: string | undefined;
  readonly onChange: (pipeline: string | undefined) => void;
}

/** Includes unstored pipelines: a run may bring its own definition. */
function PipelineChoice({ chosen, onChange }: PipelineChoiceProps): ReactElement {
  const stored = useQuery(pipelinesQuery()).data?.items.map(({ pipeline }) => pipeline) ?? [];
  const names = chosen === undefined || stored.includes(chosen) ? stored : [chosen, ...stored];
  return (
    <select
      aria-label="Pipeline"
      className={`${fieldClass} max-w-48`}
      value={chosen ?? ''}
      onChange={({ target }) => onChange(target.value === '' ? undefined : target.value)}
    >
      <option value="">any pipeline</option>
      {names.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

const nothing: RunsSearch = {
  state: undefined,
  awaiting: undefined,
  superseded: undefined,
  pipeline: undefined,
  label: undefined,
  since: undefined,
  until: undefined,
  q: undefined,
};

function Chip({
  name,
  value,
  onEnd,
}: {
  readonly name: string;
  readonly value: string;
  readonly onEnd: () => void;
}): ReactElement {
  return (
    <button
      type="button"
      onClick={onEnd}
      className="h-8 rounded-md bg-accent-soft px-2.5 text-sm text-accent"
      aria-label={`${name} ${value}: take the filter away`}
    >
      {name} {value} ×
    </button>
  );
}
