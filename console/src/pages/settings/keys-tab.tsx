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

/** Keys and what each may do. A key itself is shown once. */
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
                    <th>May</th>
                    <th>Made</th>
                    <th>Ends</th>
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
                      <td className="text-muted">
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
    const scopes = String(form.get('scopes') ?? '')
      .split(/[\s,]+/)
      .filter((scope) => scope !== '');
    create.mutate({
      name: form.get('name'),
      scopes,
      projects: session?.projects.map(({ project_id }) => project_id) ?? [],
    });
  };
  return (
    <Panel title="New key">
      <form onSubmit={submit} className="flex flex-wrap items-end gap-3 text-sm">
        <label className="flex flex-col gap-1">
          Name
          <input name="name" required className={`${fieldClass} w-44`} />
        </label>
        <label className="flex min-w-0 flex-1 flex-col gap-1">
          Scopes
          <input
            name="scopes"
            required
            defaultValue="run:read run:write pipeline:read"
            className={`${fieldClass} w-full min-w-0 font-mono`}
          />
        </label>
        <Button type="submit" look="primary" disabled={create.isPending}>
          Make it
        </Button>
      </form>
      {create.error === null ? null : <ProblemView error={create.error} />}
      {made === null ? null : (
        <p role="status" className="mt-3 flex items-center gap-2 rounded-md bg-done-soft px-3 py-2 text-sm">
          <code className="min-w-0 break-all font-mono">{made}</code>
          <CopyButton text={made} name="the key" />
          <span className="text-muted">It is shown once.</span>
        </p>
      )}
    </Panel>
  );
}
