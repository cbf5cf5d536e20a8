import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { auditQuery } from '../../api/access.ts';
import { JsonTree } from '../../json/json-tree.tsx';
import { Moment } from '../../shared/ago.tsx';
import { IdLink } from '../../shared/id-link.tsx';
import { EmptyState, Panel, tableClass } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';

/** Changes to objects that outlive a run, with their actors. */
export function AuditTab(): ReactElement {
  const query = useQuery(auditQuery());
  return (
    <Panel isTight>
      <QueryView query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState title="Nothing to tell yet">
              Changes of keys, projects, limits, skills and pipelines show here.
            </EmptyState>
          ) : (
            <section className="scrolls" tabIndex={0} aria-label="Audit">
              <table className={tableClass}>
                <thead>
                  <tr>
                    <th>Time</th>
                    <th>Actor</th>
                    <th>Action</th>
                    <th>Target</th>
                    <th className="max-md:hidden">Details</th>
                  </tr>
                </thead>
                <tbody>
                  {items.map(({ entry_id, at, actor, action, subject, data }) => (
                    <tr key={entry_id} className="align-top">
                      <td className="text-muted">
                        <Moment at={at} />
                      </td>
                      <td className="font-mono text-xs">
                        <IdLink id={actor} />
                      </td>
                      <td className="whitespace-nowrap font-medium">{action}</td>
                      <td className="break-all font-mono text-xs">
                        <IdLink id={subject} />
                      </td>
                      <td className="max-md:hidden">
                        {Object.keys(data).length === 0 ? null : <JsonTree value={data} name="details" />}
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
  );
}
