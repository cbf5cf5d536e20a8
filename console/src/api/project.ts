/** Which of the session's projects is looked at; null: the first. Kept by the browser. */
const place = 'capstan.project';

export function readProject(): string | null {
  return localStorage.getItem(place);
}

export function chooseProject(projectId: string | null): void {
  if (projectId === null) localStorage.removeItem(place);
  else localStorage.setItem(place, projectId);
}
