import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactElement, useState } from 'react';
import { createKey } from '../../api/access.ts';
import { sessionQuery } from '../../api/session.ts';
import { CopyButton } from '../../shared/copy-button.tsx';
import { Button, fieldClass, Panel } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { KeyList } from './key-list.tsx';
import { readExpiry, readRate } from './key-uses.ts';
import { scopes, scopeWords, toKeyScopes, usualScopes } from './scope-model.ts';

/** Keys, their use, and their scopes. A key itself is shown once. */
export function KeysTab(): ReactElement {
  const [made, setMade] = useState<string | null>(null);
  return (
    <div className="flex flex-col gap-4">
      {made === null ? null : <MadeKey made={made} />}
      <KeyList onMade={setMade} />
      <NewKey onMade={setMade} />
    </div>
  );
}

function MadeKey({ made }: { readonly made: string }): ReactElement {
  return (
    <p role="status" className="flex items-center gap-2 rounded-md bg-done-soft px-3 py-2 text-sm">
      <code className="min-w-0 break-all font-mono">{made}</code>
      <CopyButton text={made} name="the key" />
      <span className="text-muted">Copy it now; you will not see it again.</span>
    </p>
  );
}

function NewKey({ onMade }: { readonly onMade: (key: string) => void }): ReactElement {
  const queries = useQueryClient();
  const session = useQuery(sessionQuery).data;
  const create = useMutation({
    mutationFn: createKey,
    onSuccess: ({ key }) => {
      onMade(key);
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
      expires_at: readExpiry(String(form.get('expires') ?? '')),
      requests_per_minute: readRate(String(form.get('requests') ?? '')),
      tokens_per_minute: readRate(String(form.get('tokens') ?? '')),
    });
  };
  return (
    <Panel title="New key">
      <form onSubmit={submit} className="flex flex-col gap-3 text-sm">
        <label className="flex flex-col gap-1">
          Name
          <input name="name" required className={`${fieldClass} w-64 max-w-full`} />
        </label>
        <div className="flex flex-wrap gap-3">
          <label className="flex flex-col gap-1">
            Expires
            <input name="expires" type="date" className={fieldClass} />
          </label>
          <RateField name="requests" label="Requests a minute" />
          <RateField name="tokens" label="Tokens a minute" />
        </div>
        <ScopeChoice />
        <Button type="submit" look="primary" className="self-start" disabled={create.isPending}>
          Create key
        </Button>
      </form>
      {create.error === null ? null : <ProblemView error={create.error} />}
    </Panel>
  );
}

function RateField({ name, label }: { readonly name: string; readonly label: string }): ReactElement {
  return (
    <label className="flex flex-col gap-1">
      {label}
      <input
        name={name}
        type="number"
        min="1"
        step="1"
        placeholder="as every key"
        className={`${fieldClass} w-36`}
      />
    </label>
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
