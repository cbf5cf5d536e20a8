import type { HookDelivery } from '@capstan/core/contracts/hook';
import type { Json } from '@capstan/core/contracts/primitives';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { receivedDetailQuery, receivedQuery, replayReceived } from '../api/hooks.ts';
import { JsonTree } from '../json/json-tree.tsx';
import { Ago } from '../shared/ago.tsx';
import { IdLink } from '../shared/id-link.tsx';
import { Button } from '../shared/parts.tsx';
import { ProblemView } from '../shared/problem-view.tsx';
import { QueryView } from '../shared/query-view.tsx';
import { toneText } from '../shared/state.ts';
import { describeReceived, describeReplay } from './hook-model.ts';

const readEveryMs = 5_000;

interface ReceivedListProps {
  readonly name: string;
  readonly isEnabled: boolean;
}

/** The deliveries to a hook, and what became of each. */
export function ReceivedList({ name, isEnabled }: ReceivedListProps): ReactElement {
  const query = useQuery({ ...receivedQuery(name), refetchInterval: readEveryMs });
  return (
    <QueryView query={query}>
      {({ items }) =>
        items.length === 0 ? (
          <p className="mt-2 text-muted">No delivery in the last 30 days.</p>
        ) : (
          <ul aria-label={`Deliveries to ${name}`} className="mt-2 divide-y divide-line">
            {items.map((delivery) => (
              <Received key={delivery.delivery_id} name={name} delivery={delivery} isEnabled={isEnabled} />
            ))}
          </ul>
        )
      }
    </QueryView>
  );
}

interface ReceivedProps extends ReceivedListProps {
  readonly delivery: HookDelivery;
}

function Received({ name, delivery, isEnabled }: ReceivedProps): ReactElement {
  const { delivery_id, run_id, replay_of, received_at } = delivery;
  const { text, tone } = describeReceived(delivery);
  const [isOpen, setOpen] = useState(false);
  return (
    <li className="py-2">
      <div className="flex flex-wrap items-center gap-x-3">
        <span className={`min-w-0 wrap-anywhere ${toneText[tone]}`}>{text}</span>
        {run_id === null ? null : <IdLink id={run_id} />}
        {replay_of === null ? null : <span className="text-xs text-muted">sent again by a person</span>}
        <span className="ml-auto text-muted">
          <Ago at={received_at} />
        </span>
        <Replay name={name} delivery={delivery} isEnabled={isEnabled} />
      </div>
      <details className="text-xs" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary className="cursor-pointer text-muted">What was sent</summary>
        {isOpen ? <Sent name={name} deliveryId={delivery_id} /> : null}
      </details>
    </li>
  );
}

function Replay({ name, delivery, isEnabled }: ReceivedProps): ReactElement {
  const queries = useQueryClient();
  const replay = useMutation({
    mutationFn: () => replayReceived(name, delivery.delivery_id),
    onSettled: async () => {
      await queries.invalidateQueries({ queryKey: ['hooks'] });
      await queries.invalidateQueries({ queryKey: ['runs'] });
    },
  });
  return (
    <>
      <Button
        disabled={replay.isPending || !isEnabled}
        title={isEnabled ? describeReplay(delivery) : 'The hook is disabled'}
        aria-label={`Replay the delivery ${delivery.delivery_id}`}
        onClick={() => replay.mutate()}
      >
        Replay
      </Button>
      {replay.data === undefined ? null : (
        <p role="status" className="w-full text-xs">
          Sent again: {describeReceived(replay.data).text}{' '}
          {replay.data.run_id === null ? null : <IdLink id={replay.data.run_id} />}
        </p>
      )}
      {replay.error === null ? null : <ProblemView error={replay.error} />}
    </>
  );
}

function Sent({ name, deliveryId }: { readonly name: string; readonly deliveryId: string }): ReactElement {
  const query = useQuery(receivedDetailQuery(name, deliveryId));
  return (
    <QueryView query={query}>
      {({ headers, body }) => (
        <>
          <JsonTree value={headers as Json} name="headers" />
          {body === null ? (
            <p className="text-muted">
              Its body is not kept: it has more than 64 KiB, or repeats another delivery.
            </p>
          ) : (
            <JsonTree value={body} name="body" />
          )}
        </>
      )}
    </QueryView>
  );
}
