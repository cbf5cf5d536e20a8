import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { projectsQuery } from '../../api/access.ts';
import { callsQuery } from '../../api/calls.ts';
import { capabilitiesQuery } from '../../api/capabilities.ts';
import { useKeys } from '../../api/key-names.ts';
import { readProject } from '../../api/project.ts';
import { sessionQuery } from '../../api/session.ts';
import { CallTable } from '../../calls/call-table.tsx';
import { toCallsPath } from '../../calls/calls-path.ts';
import { type CallsSearch, callOutcomes, readPages, writePages } from '../../searches.ts';
import { CursorPager } from '../../shared/cursor-pager.tsx';
import { Icon } from '../../shared/icon.tsx';
import { Button, buttonClass, EmptyState, fieldClass, PageHead, Panel } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';

function toCsvAddress(search: CallsSearch): string {
  const project = readProject();
  return toCallsPath(search, { format: 'csv', ...(project === null ? {} : { project_id: project }) });
}

/** Every call of the project, newest first; the filters are in the address. */
export function CallsPage(): ReactElement {
  const { after, ...search } = useSearch({ from: '/calls' });
  const navigate = useNavigate({ from: '/calls' });
  const cursors = readPages({ after });
  const query = useQuery(callsQuery(search, cursors.at(-1) ?? ''));
  return (
    <>
      <PageHead
        title="Calls"
        about="Every call, direct or of a run: who pays, the model and its tokens, the cost and the end."
        actions={
          <a href={toCsvAddress(search)} download="calls.csv" className={buttonClass('plain')}>
            <Icon name="download" size={15} /> CSV
          </a>
        }
      />
      <CallFilters
        search={search}
        onChange={(part) => void navigate({ search: { ...search, ...part }, replace: true })}
        onClear={() => void navigate({ search: {}, replace: true })}
      />
      <ContentHint />
      <Panel isTight>
        <QueryView query={query}>
          {({ items, next_cursor }) =>
            items.length === 0 ? (
              <EmptyState title="No calls">
                A call of a capability or a model shows here when it begins, with its cost when it ends.
              </EmptyState>
            ) : (
              <>
                <section className="scrolls" tabIndex={0} aria-label="Calls">
                  <CallTable calls={items} />
                </section>
                <CursorPager
                  cursors={cursors}
                  nextCursor={next_cursor}
                  onTurn={(pages) => void navigate({ search: { ...search, ...writePages(pages) } })}
                />
              </>
            )
          }
        </QueryView>
      </Panel>
    </>
  );
}

/** For those who may switch contents on, while they are off. */
function ContentHint(): ReactElement | null {
  const { scopes = [], projects: own = [] } = useQuery(sessionQuery).data ?? {};
  const chosen = readProject() ?? own[0]?.project_id;
  const isAllowed = (scopes as readonly string[]).includes('admin');
  const projects = useQuery({ ...projectsQuery(), enabled: isAllowed, retry: false }).data?.items ?? [];
  const current = projects.find((one) => one.project_id === chosen);
  if (current === undefined || current.content_days !== null) return null;
  return (
    <p className="mb-3 text-sm text-muted">
      What is sent and answered is not kept.{' '}
      <Link to="/settings" search={{ tab: 'projects' }} className="underline">
        Keep contents for some days
      </Link>{' '}
      to see calls as conversations.
    </p>
  );
}

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

function CallFilters({ search, onChange, onClear }: FiltersProps): ReactElement {
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
      {Object.values(search).some((value) => value !== undefined) ? (
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
