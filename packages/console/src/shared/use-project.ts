import type { Project } from '@capstan/core/contracts/access';
import { useQuery } from '@tanstack/react-query';
import { projectsQuery } from '../api/access.ts';
import { readProject } from '../api/project.ts';
import { sessionQuery } from '../api/session.ts';

/** The chosen project with its settings; undefined: they have not come yet, or this session may not read them. */
export function useProject(): Project | undefined {
  const { scopes = [], projects: own = [] } = useQuery(sessionQuery).data ?? {};
  const chosen = readProject() ?? own[0]?.project_id;
  const isAllowed = (scopes as readonly string[]).includes('admin');
  const projects = useQuery({ ...projectsQuery(), enabled: isAllowed, retry: false }).data?.items ?? [];
  return projects.find(({ project_id }) => project_id === chosen);
}
