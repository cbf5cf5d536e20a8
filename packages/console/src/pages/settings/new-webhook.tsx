import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactElement, useState } from 'react';
import { createWebhook } from '../../api/webhooks.ts';
import { CopyButton } from '../../shared/copy-button.tsx';
import { Button, fieldClass, Panel } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { eventWords, webhookEvents } from './webhook-model.ts';

/** An address and its events. The secret that signs deliveries is shown once. */
export function NewWebhook(): ReactElement {
  const queries = useQueryClient();
  const [secret, setSecret] = useState<string | null>(null);
  const create = useMutation({
    mutationFn: createWebhook,
    onSuccess: (made) => {
      setSecret(made.secret);
      return queries.invalidateQueries({ queryKey: ['webhooks'] });
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const chosen = form.getAll('event').map(String);
    create.mutate({
      url: String(form.get('url')),
      events: webhookEvents.filter((one) => chosen.includes(one)),
    });
  };
  return (
    <Panel title="New webhook">
      <form onSubmit={submit} className="flex flex-col gap-3 text-sm">
        <label className="flex flex-col gap-1">
          Address
          <input
            name="url"
            type="url"
            required
            placeholder="https://"
            className={`${fieldClass} w-full max-w-xl`}
          />
        </label>
        <fieldset>
          <legend className="mb-1">Events</legend>
          <div className="flex flex-wrap gap-x-4 gap-y-1.5">
            {webhookEvents.map((event) => (
              <label key={event} className="flex items-center gap-1.5">
                <input type="checkbox" name="event" value={event} defaultChecked={event === 'run.ended'} />
                {eventWords[event]}
              </label>
            ))}
          </div>
        </fieldset>
        <Button type="submit" look="primary" className="self-start" disabled={create.isPending}>
          Add webhook
        </Button>
      </form>
      {create.error === null ? null : <ProblemView error={create.error} />}
      {secret === null ? null : (
        <p
          role="status"
          className="mt-3 flex flex-wrap items-center gap-2 rounded-md bg-done-soft px-3 py-2 text-sm"
        >
          <code className="min-w-0 break-all font-mono">{secret}</code>
          <CopyButton text={secret} name="the secret" />
          <span className="text-muted">Deliveries are signed with it. It is shown once.</span>
        </p>
      )}
    </Panel>
  );
}
