import type { PipelineVersion } from '@capstan/core/contracts/pipeline-answers';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactElement, useState } from 'react';
import { aliasesQuery, deleteAlias, putAlias } from '../../api/aliases.ts';
import { pipelineQuery, versionsQuery } from '../../api/pipelines.ts';
import { TextDiff } from '../../diff/text-diff.tsx';
import { Ago } from '../../shared/ago.tsx';
import { ConfirmButton } from '../../shared/confirm-button.tsx';
import { Button, Facts, fieldClass, Panel } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { sourceOf } from './source-text.ts';

/** The selected version, its aliases, and its difference from another. */
export function VersionPanel({ stored }: { readonly stored: PipelineVersion }): ReactElement {
  const [other, setOther] = useState('');
  const versions = useQuery(versionsQuery(stored.pipeline)).data?.items ?? [];
  const compared = useQuery({ ...pipelineQuery(stored.pipeline, other), enabled: other !== '' });
  return (
    <Panel title={`Version ${stored.version}`}>
      <Facts
        facts={[
          ['stored', <Ago key="at" at={stored.created_at} />],
          [
            'digest',
            <code key="digest" className="break-all font-mono text-xs">
              {stored.digest.slice(0, 16)}
            </code>,
          ],
          ['steps', stored.definition.steps.length],
        ]}
      />
      <AliasList name={stored.pipeline} version={stored.version} />
      <AliasForm name={stored.pipeline} version={stored.version} />
      {versions.length < 2 ? null : (
        <label className="mt-4 flex items-center gap-2 text-sm">
          Differs from
          <select className={fieldClass} value={other} onChange={({ target }) => setOther(target.value)}>
            <option value="">…</option>
            {versions
              .filter(({ version }) => version !== stored.version)
              .map(({ version }) => (
                <option key={version}>{version}</option>
              ))}
          </select>
        </label>
      )}
      {compared.data === undefined ? null : (
        <TextDiff before={sourceOf(compared.data)} after={sourceOf(stored)} />
      )}
    </Panel>
  );
}

/** `latest` follows what is stored, and cannot be deleted. */
function AliasList({
  name,
  version,
}: {
  readonly name: string;
  readonly version: string;
}): ReactElement | null {
  const queries = useQueryClient();
  const items = useQuery(aliasesQuery(name)).data?.items ?? [];
  const remove = useMutation({
    mutationFn: (alias: string) => deleteAlias(name, alias),
    onSettled: () => queries.invalidateQueries({ queryKey: ['pipeline', name, 'aliases'] }),
  });
  return (
    <>
      <ul aria-label="Aliases" className="mt-3 flex flex-col gap-1 text-sm">
        {items
          .filter(({ alias }) => alias !== 'latest')
          .map(({ alias, version: leadsTo, updated_at }) => (
            <li key={alias} className="flex items-center gap-2">
              <span className="min-w-0 flex-1 truncate">
                <span className="font-medium">{alias}</span> is{' '}
                {leadsTo === version ? 'this version' : leadsTo}{' '}
                <span className="text-muted">
                  since <Ago at={updated_at} />
                </span>
              </span>
              <ConfirmButton
                question={{
                  title: `Delete the alias ${alias}?`,
                  about: (
                    <p>The next start with it is refused, also by a schedule. Runs keep their version.</p>
                  ),
                  confirm: 'Delete the alias',
                  keep: 'Keep the alias',
                }}
                onConfirm={() => remove.mutate(alias)}
                aria-label={`Delete the alias ${alias}`}
              >
                Delete …
              </ConfirmButton>
            </li>
          ))}
      </ul>
      {remove.error === null ? null : <ProblemView error={remove.error} />}
    </>
  );
}

function AliasForm({ name, version }: { readonly name: string; readonly version: string }): ReactElement {
  const queries = useQueryClient();
  const put = useMutation({
    mutationFn: (alias: string) => putAlias(name, alias, version),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['pipeline', name, 'aliases'] }),
  });
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const alias = String(new FormData(event.currentTarget).get('alias') ?? '').trim();
    if (alias !== '') put.mutate(alias);
  };
  return (
    <form onSubmit={submit} className="mt-3 flex flex-wrap items-center gap-2">
      <input
        name="alias"
        aria-label="Alias of this version"
        placeholder="alias, such as stable"
        className={`${fieldClass} min-w-0 flex-1`}
      />
      <Button type="submit" disabled={put.isPending}>
        {put.isSuccess ? 'Alias set' : 'Set alias'}
      </Button>
      {put.error === null ? null : <ProblemView error={put.error} />}
    </form>
  );
}
