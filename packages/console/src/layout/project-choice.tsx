import type { BrowserSession } from '@capstan/core/contracts/sign-in';
import type { ReactElement } from 'react';
import { chooseProject, readProject } from '../api/project.ts';
import { fieldClass } from '../shared/parts.tsx';

/** Shown only if there is a choice. A change of the project drops all loaded data. */
export function ProjectChoice({ session }: { readonly session: BrowserSession }): ReactElement | null {
  if (session.projects.length < 2) return null;
  return (
    <select
      aria-label="Project"
      className={`${fieldClass} max-w-40`}
      defaultValue={readProject() ?? session.projects[0]?.project_id}
      onChange={({ target }) => {
        chooseProject(target.value);
        location.assign('/ui/');
      }}
    >
      {session.projects.map(({ project_id, name }) => (
        <option key={project_id} value={project_id}>
          {name}
        </option>
      ))}
    </select>
  );
}
