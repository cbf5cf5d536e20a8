/** The keys with their rates and what they used, each with its rotation and revocation. */
import type { Key } from '@capstan/core/contracts/access';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { keysQuery, revokeKey, rotateKey } from '../../api/access.ts';
import { costSeriesQuery } from '../../api/money.ts';
import { sessionQuery } from '../../api/session.ts';
import { Ago } from '../../shared/ago.tsx';
import { ConfirmButton, type ConfirmQuestion } from '../../shared/confirm-button.tsx';
import { formatUsd } from '../../shared/format.ts';
import { linkClass, Panel, tableClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { describeRates, type KeyUse, readUses } from './key-uses.ts';

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

function rotateQuestion(name: string): ConfirmQuestion {
  return {
    title: `Rotate ${name}?`,
    about: <p>It gets a new secret, which you see once. The former one works for another day.</p>,
    confirm: 'Rotate the key',
    keep: 'Keep the secret',
  };
}

/** Of a month: by key, by day. */
const lately = { period: 'last_30_days', by: 'key', bucket: 'day' } as const;

/** @param onMade receives the new secret of a rotated key */
export function KeyList({ onMade }: { readonly onMade: (key: string) => void }): ReactElement {
  const queries = useQueryClient();
  const query = useQuery(keysQuery());
  const own = useQuery(sessionQuery).data?.key_id;
  const costs = useQuery({ ...costSeriesQuery(lately), retry: false, staleTime: 60_000 }).data;
  const findUse = costs === undefined ? () => null : readUses(costs);
  const onSettled = () => queries.invalidateQueries({ queryKey: ['keys'] });
  const revoke = useMutation({ mutationFn: revokeKey, onSettled });
  const rotate = useMutation({ mutationFn: rotateKey, onSettled, onSuccess: ({ key }) => onMade(key) });
  const fault = revoke.error ?? rotate.error;
  return (
    <>
      {fault === null ? null : <ProblemView error={fault} />}
      <Panel isTight>
        <QueryView query={query}>
          {({ items }) => (
            <section className="scrolls" tabIndex={0} aria-label="Keys">
              <table className={tableClass}>
                <thead>
                  <tr>
                    <th>Name</th>
                    <th className="text-right!">Spent in 30 days</th>
                    <th className="max-sm:hidden">Last call</th>
                    <th>Expires</th>
                    <th>
                      <span className="sr-only">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {items.map((one) => (
                    <KeyRow
                      key={one.key_id}
                      of={one}
                      isOwn={one.key_id === own}
                      use={findUse(one.key_id)}
                      onRevoke={() => revoke.mutate(one.key_id)}
                      onRotate={() => rotate.mutate(one.key_id)}
                    />
                  ))}
                </tbody>
              </table>
            </section>
          )}
        </QueryView>
      </Panel>
    </>
  );
}

interface KeyRowProps {
  readonly of: Key;
  /** A session never rotates its own key. */
  readonly isOwn: boolean;
  /** Null: it is unknown. */
  readonly use: KeyUse | null;
  readonly onRevoke: () => void;
  readonly onRotate: () => void;
}

function KeyRow({ of: key, isOwn, use, onRevoke, onRotate }: KeyRowProps): ReactElement {
  const { key_id, name, scopes, revoked_at } = key;
  const rates = describeRates(key);
  return (
    <tr className={revoked_at === null ? '' : 'text-muted'}>
      <td className="sm:max-w-96">
        <span className="font-medium" title={key_id}>
          {name}
        </span>{' '}
        {isOwn ? <span className="text-xs text-accent">this session</span> : null}
        <span className="block text-xs text-muted">{scopes.join(', ')}</span>
        {rates === null ? null : <span className="figure block text-xs text-muted">{rates}</span>}
      </td>
      <td className="figure text-right!">
        {use === null ? (
          ''
        ) : (
          <Link to="/costs" search={{ period: 'last_30_days', by: 'key' }} className={linkClass}>
            {formatUsd(use.usd)}
          </Link>
        )}
      </td>
      <td className="text-muted max-sm:hidden">
        {use === null ? '' : use.last === null ? 'none in 30 days' : formatDay(use.last)}
      </td>
      <td className="text-muted">
        <Expiry of={key} />
      </td>
      <td className="text-right! sm:whitespace-nowrap">
        {revoked_at === null ? (
          <>
            {isOwn ? null : (
              <ConfirmButton
                look="bare"
                question={rotateQuestion(name)}
                onConfirm={onRotate}
                aria-label={`Rotate ${name}`}
              >
                Rotate …
              </ConfirmButton>
            )}
            <ConfirmButton
              question={revokeQuestion(name, isOwn)}
              onConfirm={onRevoke}
              aria-label={`Revoke ${name}`}
            >
              Revoke …
            </ConfirmButton>
          </>
        ) : null}
      </td>
    </tr>
  );
}

function formatDay(at: string): string {
  return new Date(at).toLocaleDateString([], { year: 'numeric', month: 'short', day: 'numeric' });
}

function Expiry({ of: { revoked_at, expires_at } }: { readonly of: Key }): ReactElement {
  if (revoked_at !== null) return <>revoked</>;
  return expires_at === null ? <>never</> : <Ago at={expires_at} />;
}
