/**
 * One server and worker for all files of a test worker that kill nobody and set nothing: each file has a project and a
 * key of its own, so it meets nothing of the others. Who starts one of its own pays four seconds of processor time.
 */
import { type Capstan, type CapstanClient, createClient, startCapstan } from './capstan.ts';
import { hasTestFailed } from './failures.ts';

/** A Capstan as those see it who have a project there. */
export interface SharedCapstan extends CapstanClient, Pick<Capstan, 'url' | 'key' | 'databaseUrl' | 'logs'> {}

/** Kept by the module, as long as files of one project of tests follow one another. */
let started: Promise<Capstan> | null = null;

async function openProject(capstan: Capstan): Promise<string> {
  const name = 'a file of tests';
  const project = await capstan.request<{ project_id: string }>('POST', '/v1/projects', { name });
  const projects = [project.body.project_id];
  const key = await capstan.request<{ key: string }>('POST', '/v1/keys', {
    name,
    scopes: ['admin'],
    projects,
  });
  return key.body.key;
}

/** With a project of the caller alone. To be called once in a file; it is not stopped by it. */
export async function shareCapstan(): Promise<SharedCapstan> {
  started ??= startCapstan({}, true);
  const capstan = await started.catch((error) => {
    started = null;
    throw error;
  });
  const { url, databaseUrl, logs } = capstan;
  const key = await openProject(capstan);
  return { ...createClient(() => url, key), url, key, databaseUrl, logs };
}

/** When a file is over. What a failed test may have left is not for the next file: that one starts anew. */
export async function leaveCapstan(): Promise<void> {
  if (!hasTestFailed()) return;
  const capstan = await started;
  started = null;
  await capstan?.stop();
}
