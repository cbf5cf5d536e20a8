import type { Webhook } from '@capstan/core/contracts/webhook';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { deliveriesQuery, removeWebhook, testWebhook, webhooksQuery } from '../../api/webhooks.ts';
import { Ago } from '../../shared/ago.tsx';
import { ConfirmButton } from '../../shared/confirm-button.tsx';
import { Button, EmptyState, Panel, tableClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { toneText } from '../../shared/state.ts';
import { DeliveryList } from './delivery-list.tsx';
import { NewWebhook } from './new-webhook.tsx';
import { describeDelivery, describeTrouble } from './webhook-model.ts';

/** The project's webhooks, the results of their deliveries, and a test. */
export function WebhooksTab(): ReactElement {
  const query = useQuery(webhooksQuery());
  const [shown, setShown] = useState<string | null>(null);
  return (
    <div className="flex flex-col gap-4">
      <NewWebhook />
      <Panel isTight>
        <QueryView query={query}>
          {({ items }) =>
            items.length === 0 ? (
              <EmptyState
                title="No webhooks yet"
                command="node bin/capstan.mjs webhooks add URL --event run.ended"
              >
                Capstan sends a request to a webhook when a run ends, a review opens, a budget runs out or an
                instance goes down.
              </EmptyState>
            ) : (
              <section className="scrolls" tabIndex={0} aria-label="Webhooks">
                <table className={tableClass}>
                  <thead>
                    <tr>
                      <th>Address</th>
                      <th>Events</th>
                      <th>Created</th>
                      <th>
                        <span className="sr-only">What to do</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {items.map((webhook) => (
                      <WebhookRow
                        key={webhook.webhook_id}
                        webhook={webhook}
                        isShown={shown === webhook.webhook_id}
                        onHide={() => setShown((id) => (id === webhook.webhook_id ? null : id))}
                        onShow={() => setShown(shown === webhook.webhook_id ? null : webhook.webhook_id)}
                      />
                    ))}
                  </tbody>
                </table>
              </section>
            )
          }
        </QueryView>
      </Panel>
      {shown === null ? null : <DeliveryList webhookId={shown} />}
    </div>
  );
}

interface WebhookRowProps {
  readonly webhook: Webhook;
  readonly isShown: boolean;
  readonly onShow: () => void;
  readonly onHide: () => void;
}

function WebhookRow({ webhook, isShown, onShow, onHide }: WebhookRowProps): ReactElement {
  const { webhook_id, url, events, created_at } = webhook;
  const queries = useQueryClient();
  const readAgain = (): Promise<unknown> => queries.invalidateQueries({ queryKey: ['webhooks'] });
  const test = useMutation({ mutationFn: () => testWebhook(webhook_id), onSettled: readAgain });
  // Its deliveries are deleted with it, so they must not be requested any more.
  const remove = useMutation({
    mutationFn: () => removeWebhook(webhook_id),
    onMutate: onHide,
    onSettled: () => queries.invalidateQueries({ queryKey: ['webhooks'], exact: true }),
  });
  const told = test.data === undefined ? null : describeDelivery(test.data);
  const error = test.error ?? remove.error;
  return (
    <tr>
      <td className="min-w-0 break-all font-mono text-xs">
        {url}
        <Trouble webhookId={webhook_id} isThere={remove.isIdle || remove.isError} />
        {told === null ? null : (
          <p role="status" className={`mt-1 font-sans ${toneText[told.tone]}`}>
            {told.text}
          </p>
        )}
        {error === null ? null : <ProblemView error={error} />}
      </td>
      <td className="text-xs">{events.join(', ')}</td>
      <td className="whitespace-nowrap text-muted">
        <Ago at={created_at} />
      </td>
      <td>
        <div className="flex flex-wrap justify-end gap-1.5">
          <Button disabled={test.isPending} onClick={() => test.mutate()} aria-label={`Test ${url}`}>
            {test.isPending ? 'Telling …' : 'Test'}
          </Button>
          <Button aria-expanded={isShown} onClick={onShow} aria-label={`Deliveries to ${url}`}>
            Deliveries
          </Button>
          <ConfirmButton
            question={{
              title: 'Remove this webhook?',
              about: (
                <p className="break-words">
                  {url} gets no further events. Its deliveries are deleted, those that still wait as well.
                </p>
              ),
              confirm: 'Remove the webhook',
              keep: 'Keep the webhook',
            }}
            onConfirm={() => remove.mutate()}
            aria-label={`Remove ${url}`}
          >
            Remove …
          </ConfirmButton>
        </div>
      </td>
    </tr>
  );
}

interface TroubleProps {
  readonly webhookId: string;
  /** A webhook that is being removed must not be requested. */
  readonly isThere: boolean;
}

function Trouble({ webhookId, isThere }: TroubleProps): ReactElement | null {
  const { data } = useQuery({ ...deliveriesQuery(webhookId), refetchInterval: 15_000, enabled: isThere });
  const text = data === undefined ? null : describeTrouble(data.items);
  return text === null ? null : <p className="mt-1 font-sans text-failed">{text}</p>;
}
