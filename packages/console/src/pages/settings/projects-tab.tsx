import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { projectsQuery } from '../../api/access.ts';
import { formatUsd } from '../../shared/format.ts';
import { Panel, tableClass } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';

export function ProjectsTab(): ReactElement {
  const query = useQuery(projectsQuery());
  return (
    <Panel isTight>
      <QueryView query={query}>
        {({ items }) => (
          <table className={tableClass}>
            <thead>
              <tr>
                <th>Project</th>
                <th className="max-sm:hidden">Id</th>
                <th>Time zone</th>
                <th className="text-right!">Daily limit</th>
              </tr>
            </thead>
            <tbody>
              {items.map(({ project_id, name, timezone, daily_limit_usd }) => (
                <tr key={project_id}>
                  <td className="font-medium">{name}</td>
                  <td className="font-mono text-xs text-muted max-sm:hidden">{project_id}</td>
                  <td>{timezone}</td>
                  <td className="figure text-right!">
                    {daily_limit_usd === 0 ? 'none' : formatUsd(daily_limit_usd)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </QueryView>
    </Panel>
  );
}
