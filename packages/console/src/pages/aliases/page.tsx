import { isModelName, type ModelAlias } from '@capstan/core/contracts/model-alias';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type FormEvent, type ReactElement, useState } from 'react';
import { deleteModelAlias, modelAliasesQuery, putModelAlias } from '../../api/aliases.ts';
import { capabilitiesQuery } from '../../api/capabilities.ts';
import { nameKeys, useKeys } from '../../api/key-names.ts';
import { Ago } from '../../shared/ago.tsx';
import { Breakable } from '../../shared/breakable.tsx';
import { ConfirmButton } from '../../shared/confirm-button.tsx';
import {
  Button,
  EmptyState,
  fieldClass,
  linkClass,
  PageHead,
  Panel,
  tableClass,
} from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { QueryView } from '../../shared/query-view.tsx';

/** Names that lead to models, for programs that keep the names they know. */
export function AliasesPage(): ReactElement {
  const query = useQuery(modelAliasesQuery());
  const [edited, setEdited] = useState<ModelAlias | null>(null);
  return (
    <>
      <PageHead
        title="Aliases of models"
        about={
          <>
            Requests in the form of OpenAI may name a model as they know it: an alias leads to a capability of
            this project. The aliases of a pipeline's versions are on its page.
          </>
        }
      />
      <div className="flex flex-col gap-4">
        <SetAlias key={edited?.name ?? ''} edited={edited} onSet={() => setEdited(null)} />
        <Panel isTight>
          <QueryView query={query}>
            {({ items }) =>
              items.length === 0 ? (
                <EmptyState
                  title="No aliases yet"
                  command="node bin/capstan.mjs aliases set gpt-4o model.capable"
                >
                  A program that asks for <code>gpt-4o</code> needs no change: the alias decides what answers.
                </EmptyState>
              ) : (
                <AliasTable aliases={items} onEdit={setEdited} />
              )
            }
          </QueryView>
        </Panel>
      </div>
    </>
  );
}

interface SetAliasProps {
  /** The alias that is changed; null: a new one is set. */
  readonly edited: ModelAlias | null;
  readonly onSet: () => void;
}

function SetAlias({ edited, onSet }: SetAliasProps): ReactElement {
  const queries = useQueryClient();
  const models = (useQuery(capabilitiesQuery()).data?.items ?? []).filter(({ name }) => isModelName(name));
  const set = useMutation({
    mutationFn: putModelAlias,
    onSuccess: () => queries.invalidateQueries({ queryKey: ['aliases'] }),
  });
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const shown = event.currentTarget;
    const form = new FormData(shown);
    const [name, capability] = [String(form.get('name')).trim(), String(form.get('capability')).trim()];
    const onSuccess = (): void => {
      shown.reset();
      onSet();
    };
    set.mutate({ name, capability }, { onSuccess });
  };
  return (
    <Panel title={edited === null ? 'Set an alias' : `Let ${edited.name} lead elsewhere`}>
      <form onSubmit={submit} className="flex flex-wrap items-end gap-3 text-sm">
        <label className="flex min-w-0 flex-col gap-1">
          Alias
          <input
            name="name"
            required
            readOnly={edited !== null}
            defaultValue={edited?.name}
            placeholder="openai/gpt-4o"
            className={fieldClass}
          />
        </label>
        <label className="flex min-w-0 flex-col gap-1">
          Leads to
          <input
            name="capability"
            required
            list="models"
            defaultValue={edited?.capability}
            placeholder="model.capable"
            className={fieldClass}
          />
        </label>
        <datalist id="models">
          {models.map(({ name }) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <Button type="submit" look="primary" disabled={set.isPending}>
          Set alias
        </Button>
        {edited === null ? null : <Button onClick={onSet}>Keep it</Button>}
      </form>
      {set.error === null ? null : <ProblemView error={set.error} />}
      {set.data === undefined ? null : (
        <p role="status" className="mt-3 text-sm text-muted">
          {set.data.name} leads to {set.data.capability} within five seconds.
        </p>
      )}
    </Panel>
  );
}

interface AliasTableProps {
  readonly aliases: readonly ModelAlias[];
  readonly onEdit: (alias: ModelAlias) => void;
}

function AliasTable({ aliases, onEdit }: AliasTableProps): ReactElement {
  const queries = useQueryClient();
  const nameOf = nameKeys(useKeys());
  const remove = useMutation({
    mutationFn: deleteModelAlias,
    onSettled: () => queries.invalidateQueries({ queryKey: ['aliases'] }),
  });
  return (
    <section className="scrolls" tabIndex={0} aria-label="Aliases">
      {remove.error === null ? null : <ProblemView error={remove.error} />}
      <table className={tableClass}>
        <thead>
          <tr>
            <th>Alias</th>
            <th>Leads to</th>
            <th className="max-sm:hidden">Set</th>
            <th>
              <span className="sr-only">What to do</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {aliases.map((alias) => (
            <tr key={alias.name}>
              <td className="font-mono text-xs">
                <Breakable name={alias.name} />
              </td>
              <td>
                <Link to="/capabilities/$name" params={{ name: alias.capability }} className={linkClass}>
                  <Breakable name={alias.capability} />
                </Link>
              </td>
              <td className="text-muted max-sm:hidden">
                <Ago at={alias.updated_at} /> by {nameOf(alias.set_by) ?? alias.set_by}
              </td>
              <td>
                <div className="flex flex-wrap justify-end gap-2">
                  <Button aria-label={`Change ${alias.name}`} onClick={() => onEdit(alias)}>
                    Change
                  </Button>
                  <ConfirmButton
                    question={{
                      title: `Delete the alias ${alias.name}?`,
                      about: <p>Requests that name it are refused from then on.</p>,
                      confirm: 'Delete the alias',
                      keep: 'Keep the alias',
                    }}
                    onConfirm={() => remove.mutate(alias.name)}
                    aria-label={`Delete ${alias.name}`}
                  >
                    Delete …
                  </ConfirmButton>
                </div>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
