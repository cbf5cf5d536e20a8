/** The selected one of the session's projects; null: the first. Stored in the browser. */
const place = 'capstan.project';

export function readProject(): string | null {
  return localStorage.getItem(place);
}

/** Sent by name, because a key of several projects must choose; an unknown one is another key's. */
export function keepProjectOf(projects: readonly { readonly project_id: string }[]): void {
  const kept = readProject();
  const first = projects[0]?.project_id ?? null;
  if (!projects.some(({ project_id }) => project_id === kept)) chooseProject(first);
}

export function chooseProject(projectId: string | null): void {
  if (projectId === null) localStorage.removeItem(place);
  else localStorage.setItem(place, projectId);
}
