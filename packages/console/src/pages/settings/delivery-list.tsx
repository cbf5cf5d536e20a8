import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { deliveriesQuery } from '../../api/webhooks.ts';
import { JsonTree } from '../../json/json-tree.tsx';
import { Ago } from '../../shared/ago.tsx';
import { Panel } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { toneText } from '../../shared/state.ts';
import { describeDelivery } from './webhook-model.ts';

const readEveryMs = 5_000;

/** The deliveries to an address, and their results. */
export function DeliveryList({ webhookId }: { readonly webhookId: string }): ReactElement {
  const query = useQuery({ ...deliveriesQuery(webhookId), refetchInterval: readEveryMs });
  return (
    <Panel title="Deliveries" isTight>
      <QueryView query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <p className="px-4 py-5 text-sm text-muted">It was told nothing in the last 30 days.</p>
          ) : (
            <ul aria-label="Deliveries" className="divide-y divide-line text-sm">
              {items.map((delivery) => {
                const { text, tone } = describeDelivery(delivery);
                return (
                  <li key={delivery.delivery_id} className="px-4 py-2">
                    <div className="flex flex-wrap items-baseline gap-x-3">
                      <strong>{delivery.event}</strong>
                      <span className={`min-w-0 break-words ${toneText[tone]}`}>{text}</span>
                      <span className="ml-auto text-muted">
                        <Ago at={delivery.created_at} />
                      </span>
                    </div>
                    {delivery.next_try_at === null ? null : (
                      <p className="text-xs text-muted">
                        next try <Ago at={delivery.next_try_at} />
                      </p>
                    )}
                    <details className="mt-1 text-xs">
                      <summary className="cursor-pointer text-muted">What is sent</summary>
                      <JsonTree value={delivery.payload} name="payload" />
                    </details>
                  </li>
                );
              })}
            </ul>
          )
        }
      </QueryView>
    </Panel>
  );
}
