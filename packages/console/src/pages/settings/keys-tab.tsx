import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactElement, useState } from 'react';
import { createKey, keysQuery, revokeKey } from '../../api/access.ts';
import { sessionQuery } from '../../api/session.ts';
import { Ago } from '../../shared/ago.tsx';
import { ConfirmButton, type ConfirmQuestion } from '../../shared/confirm-button.tsx';
import { CopyButton } from '../../shared/copy-button.tsx';
import { Button, fieldClass, Panel, tableClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { scopes, scopeWords, toKeyScopes, usualScopes } from './scope-model.ts';

function revokeQuestion(name: string, isOwn: boolean): ConfirmQuestion {
  const about = isOwn
    ? 'This is the key that you are signed in with. You are signed out at once, and whatever else uses the key is refused.'
    : 'Whatever uses this key is refused from now on, and its sessions end. A revoked key does not come back.';
  return {
    title: `Revoke ${name}?`,
    about: <p>{about}</p>,
    confirm: 'Revoke the key',
    keep: 'Keep the key',
    typed: isOwn ? name : undefined,
  };
}

/** Keys and their scopes. A key itself is shown once. */
export function KeysTab(): ReactElement {
  const queries = useQueryClient();
  const query = useQuery(keysQuery());
  const own = useQuery(sessionQuery).data?.key_id;
  const revoke = useMutation({
    mutationFn: revokeKey,
    onSettled: () => queries.invalidateQueries({ queryKey: ['keys'] }),
  });
  return (
    <div className="flex flex-col gap-4">
      <NewKey />
      {revoke.error === null ? null : <ProblemView error={revoke.error} />}
      <Panel isTight>
        <QueryView query={query}>
          {({ items }) => (
            <section className="scrolls" tabIndex={0} aria-label="Keys">
              <table className={tableClass}>
                <thead>
                  <tr>
                    <th>Name</th>
                    <th>Scopes</th>
                    <th className="max-sm:hidden">Created</th>
                    <th>Expires</th>
                    <th>
                      <span className="sr-only">Revoke</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {items.map(({ key_id, name, scopes, created_at, expires_at, revoked_at }) => (
                    <tr key={key_id} className={revoked_at === null ? '' : 'text-muted'}>
                      <td className="font-medium">
                        {name}{' '}
                        {key_id === own ? (
                          <span className="text-xs font-normal text-accent">this session</span>
                        ) : null}
                      </td>
                      <td className="text-xs">{scopes.join(', ')}</td>
                      <td className="text-muted max-sm:hidden">
                        <Ago at={created_at} />
                      </td>
                      <td className="text-muted">
                        {revoked_at === null ? (
                          expires_at === null ? (
                            'never'
                          ) : (
                            <Ago at={expires_at} />
                          )
                        ) : (
                          'revoked'
                        )}
                      </td>
                      <td className="text-right!">
                        {revoked_at === null ? (
                          <ConfirmButton
                            question={revokeQuestion(name, key_id === own)}
                            onConfirm={() => revoke.mutate(key_id)}
                            aria-label={`Revoke ${name}`}
                          >
                            Revoke …
                          </ConfirmButton>
                        ) : null}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </section>
          )}
        </QueryView>
      </Panel>
    </div>
  );
}

function NewKey(): ReactElement {
  const queries = useQueryClient();
  const session = useQuery(sessionQuery).data;
  const [made, setMade] = useState<string | null>(null);
  const create = useMutation({
    mutationFn: createKey,
    onSuccess: ({ key }) => {
      setMade(key);
      return queries.invalidateQueries({ queryKey: ['keys'] });
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    create.mutate({
      name: form.get('name'),
      scopes: toKeyScopes(form.getAll('scope').map(String), String(form.get('registers') ?? '')),
      projects: session?.projects.map(({ project_id }) => project_id) ?? [],
    });
  };
  return (
    <Panel title="New key">
      <form onSubmit={submit} className="flex flex-col gap-3 text-sm">
        <label className="flex flex-col gap-1">
          Name
          <input name="name" required className={`${fieldClass} w-64 max-w-full`} />
        </label>
        <ScopeChoice />
        <Button type="submit" look="primary" className="self-start" disabled={create.isPending}>
          Create key
        </Button>
      </form>
      {create.error === null ? null : <ProblemView error={create.error} />}
      {made === null ? null : (
        <p role="status" className="mt-3 flex items-center gap-2 rounded-md bg-done-soft px-3 py-2 text-sm">
          <code className="min-w-0 break-all font-mono">{made}</code>
          <CopyButton text={made} name="the key" />
          <span className="text-muted">Copy it now; you will not see it again.</span>
        </p>
      )}
    </Panel>
  );
}

function ScopeChoice(): ReactElement {
  return (
    <fieldset>
      <legend className="mb-1.5">Scopes</legend>
      <div className="grid gap-x-6 gap-y-2 md:grid-cols-2">
        {scopes.map((scope) => (
          <label key={scope} className="flex items-start gap-2">
            <input
              type="checkbox"
              name="scope"
              value={scope}
              defaultChecked={usualScopes.has(scope)}
              className="mt-1"
            />
            <span>
              <span className="font-mono text-xs font-medium">{scope}</span>
              <span className="block text-xs text-muted">{scopeWords[scope]}</span>
            </span>
          </label>
        ))}
      </div>
      <label className="mt-3 flex flex-col gap-1">
        Or register only these capabilities
        <input
          name="registers"
          placeholder="concat, mix*"
          className={`${fieldClass} w-64 max-w-full font-mono`}
        />
      </label>
    </fieldset>
  );
}
