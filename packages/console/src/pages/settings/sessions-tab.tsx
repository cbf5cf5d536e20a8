import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { revokeSession, sessionsQuery } from '../../api/session.ts';
import { Ago } from '../../shared/ago.tsx';
import { ConfirmButton } from '../../shared/confirm-button.tsx';
import { EmptyState, Panel, tableClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { QueryView } from '../../shared/query-view.tsx';

/** Signed-in browsers, with their users. */
export function SessionsTab(): ReactElement {
  const queries = useQueryClient();
  const query = useQuery(sessionsQuery());
  const revoke = useMutation({
    mutationFn: revokeSession,
    onSettled: () => queries.invalidateQueries({ queryKey: ['sessions'] }),
  });
  return (
    <div className="flex flex-col gap-4">
      {revoke.error === null ? null : <ProblemView error={revoke.error} />}
      <Panel isTight>
        <QueryView query={query}>
          {({ items }) =>
            items.length === 0 ? (
              <EmptyState title="No sessions">Browsers that are signed in show here.</EmptyState>
            ) : (
              <section className="scrolls" tabIndex={0} aria-label="Sessions">
                <table className={tableClass}>
                  <thead>
                    <tr>
                      <th>Who</th>
                      <th>Key or person</th>
                      <th>Since</th>
                      <th>Ends</th>
                      <th>
                        <span className="sr-only">End</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {items.map(({ session_id, key_id, name, opened_at, expires_at }) => (
                      <tr key={session_id}>
                        <td className="font-medium">{name}</td>
                        <td className="break-all font-mono text-xs">{key_id}</td>
                        <td className="text-muted">
                          <Ago at={opened_at} />
                        </td>
                        <td className="text-muted">
                          <Ago at={expires_at} />
                        </td>
                        <td className="text-right!">
                          <ConfirmButton
                            question={{
                              title: `End the session of ${name}?`,
                              about: (
                                <p>They are signed out, and sign in again with their key or provider.</p>
                              ),
                              confirm: 'End the session',
                              keep: 'Keep the session',
                            }}
                            onConfirm={() => revoke.mutate(session_id)}
                            aria-label={`End the session of ${name}`}
                          >
                            End …
                          </ConfirmButton>
                        </td>
                      </tr>
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
