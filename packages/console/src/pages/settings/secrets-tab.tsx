import type { Secret } from '@capstan/core/contracts/secret';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { FormEvent, ReactElement } from 'react';
import { deleteSecret, secretsQuery, setSecret } from '../../api/secrets.ts';
import { Ago } from '../../shared/ago.tsx';
import { ConfirmButton } from '../../shared/confirm-button.tsx';
import { Button, EmptyState, fieldClass, Panel, tableClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { QueryView } from '../../shared/query-view.tsx';

/** The project's secrets: their receivers and last use, never a value. */
export function SecretsTab(): ReactElement {
  const query = useQuery(secretsQuery());
  return (
    <div className="flex flex-col gap-4">
      {query.data?.can_be_set === false ? <NoKey /> : <SetSecret />}
      <Panel isTight>
        <QueryView query={query}>
          {({ items }) =>
            items.length === 0 ? (
              <EmptyState
                title="No secrets yet"
                command="node bin/capstan.mjs secrets set NAME --capability NAME < FILE"
              >
                A step names a secret in its input, and an instance receives its value. It is stored
                encrypted.
              </EmptyState>
            ) : (
              <section className="scrolls" tabIndex={0} aria-label="Secrets">
                <table className={tableClass}>
                  <thead>
                    <tr>
                      <th>Name</th>
                      <th>Version</th>
                      <th>Capabilities</th>
                      <th>Hosts</th>
                      <th>Set</th>
                      <th>Used</th>
                      <th>
                        <span className="sr-only">What to do</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {items.map((secret) => (
                      <SecretRow key={secret.name} secret={secret} />
                    ))}
                  </tbody>
                </table>
              </section>
            )
          }
        </QueryView>
      </Panel>
    </div>
  );
}

/** The API refuses every secret of such a stack. */
function NoKey(): ReactElement {
  return (
    <Panel title="Set a secret">
      <p className="text-sm">
        Secrets are stored encrypted, and this stack has no key to encrypt them. Set <code>PAYLOAD_KEYS</code>{' '}
        for every server and worker, then set secrets here.
      </p>
    </Panel>
  );
}

function readWords(form: FormData, name: string): readonly string[] {
  return String(form.get(name))
    .split(/[\s,]+/)
    .filter((word) => word !== '');
}

const fields = [
  { name: 'name', label: 'Name', placeholder: 'web-token', isRequired: true },
  { name: 'capabilities', label: 'Capabilities', placeholder: 'publish.web model.*', isRequired: true },
  { name: 'hosts', label: 'Hosts (none: instances of this project)', placeholder: 'api.example.com' },
] as const;

/** Sets a secret, or gives it another value. The form forgets the value when it is stored. */
function SetSecret(): ReactElement {
  const queries = useQueryClient();
  const set = useMutation({
    mutationFn: setSecret,
    onSuccess: () => queries.invalidateQueries({ queryKey: ['secrets'] }),
    gcTime: 0, // the value is not kept with the mutation
  });
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const shown = event.currentTarget;
    const form = new FormData(shown);
    const [capabilities, hosts] = [readWords(form, 'capabilities'), readWords(form, 'hosts')];
    const asked = { name: String(form.get('name')), value: String(form.get('value')), capabilities, hosts };
    set.mutate(asked, { onSuccess: () => shown.reset() });
  };
  return (
    <Panel title="Set a secret">
      <form onSubmit={submit} autoComplete="off" className="flex flex-col gap-3 text-sm">
        {fields.map(({ name, label, placeholder, ...field }) => (
          <label key={name} className="flex flex-col gap-1">
            {label}
            <input
              name={name}
              required={'isRequired' in field}
              placeholder={placeholder}
              className={`${fieldClass} w-full max-w-xl`}
            />
          </label>
        ))}
        <label className="flex flex-col gap-1">
          Value
          <input
            name="value"
            type="password"
            required
            autoComplete="new-password"
            className={`${fieldClass} w-full max-w-xl`}
          />
        </label>
        <Button type="submit" look="primary" className="self-start" disabled={set.isPending}>
          Set secret
        </Button>
      </form>
      {set.error === null ? null : <ProblemView error={set.error} />}
      {set.data === undefined ? null : (
        <p role="status" className="mt-3 text-sm text-muted">
          {set.data.name} is set, version {set.data.version}. Its value is not shown again.
        </p>
      )}
    </Panel>
  );
}

function SecretRow({ secret }: { readonly secret: Secret }): ReactElement {
  const { name, version, capabilities, hosts, set_at, last_used_at } = secret;
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: () => deleteSecret(name),
    onSettled: () => queries.invalidateQueries({ queryKey: ['secrets'] }),
  });
  return (
    <tr>
      <td className="font-mono text-xs">
        {name}
        {remove.error === null ? null : <ProblemView error={remove.error} />}
      </td>
      <td>{version}</td>
      <td className="text-xs">{capabilities.join(', ')}</td>
      <td className="text-xs">{hosts.length === 0 ? 'this project' : hosts.join(', ')}</td>
      <td className="whitespace-nowrap text-muted">
        <Ago at={set_at} />
      </td>
      <td className="whitespace-nowrap text-muted">
        {last_used_at === null ? 'never' : <Ago at={last_used_at} />}
      </td>
      <td>
        <div className="flex justify-end">
          <ConfirmButton
            question={{
              title: `Delete the secret ${name}?`,
              about: <p>Steps that name it fail from then on.</p>,
              confirm: 'Delete the secret',
              keep: 'Keep the secret',
            }}
            onConfirm={() => remove.mutate()}
            aria-label={`Delete ${name}`}
          >
            Delete …
          </ConfirmButton>
        </div>
      </td>
    </tr>
  );
}
