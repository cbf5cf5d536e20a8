import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { keepContents, projectsQuery } from '../../api/access.ts';
import { formatUsd } from '../../shared/format.ts';
import { Button, fieldClass, Panel, tableClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
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
                <th>Contents of calls</th>
                <th className="text-right!">Daily limit</th>
              </tr>
            </thead>
            <tbody>
              {items.map(({ project_id, name, timezone, daily_limit_usd, content_days }) => (
                <tr key={project_id}>
                  <td className="font-medium">{name}</td>
                  <td className="font-mono text-xs text-muted max-sm:hidden">{project_id}</td>
                  <td>{timezone}</td>
                  <td>
                    <ContentDays key={content_days} projectId={project_id} days={content_days} />
                  </td>
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

const choices = [1, 7, 30, 90, 365];

/** For how long what is sent in calls and answered is kept; off at first. */
function ContentDays({
  projectId,
  days,
}: {
  readonly projectId: string;
  readonly days: number | null;
}): ReactElement {
  const [chosen, setChosen] = useState(days);
  const queries = useQueryClient();
  const change = useMutation({
    mutationFn: () => keepContents(projectId, chosen),
    onSuccess: () => queries.invalidateQueries({ queryKey: projectsQuery().queryKey }),
  });
  const offered = [...new Set([...choices, ...(days === null ? [] : [days])])].toSorted((a, b) => a - b);
  return (
    <div className="flex flex-wrap items-center gap-2">
      <select
        aria-label="Contents of calls"
        className={fieldClass}
        value={chosen ?? ''}
        onChange={({ target }) => setChosen(target.value === '' ? null : Number(target.value))}
      >
        <option value="">not kept</option>
        {offered.map((one) => (
          <option key={one} value={one}>
            {one === 1 ? '1 day' : `${one} days`}
          </option>
        ))}
      </select>
      {chosen === days ? null : (
        <Button look={chosen === null ? 'danger' : 'primary'} onClick={() => change.mutate()}>
          {chosen === null ? 'Delete contents' : 'Save'}
        </Button>
      )}
      {change.error === null ? null : <ProblemView error={change.error} />}
    </div>
  );
}
