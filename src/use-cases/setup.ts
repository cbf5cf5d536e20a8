/**
 * Sets up an installation: the newest schema, the project `default` and a key with all scopes. Repeatable.
 */
import { randomUUID } from 'node:crypto';
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Scope } from '@capstan/core/contracts/access';
import { insertKey } from '../db/access/api-key.ts';
import { findOldestProject, insertProject, listProjectIds } from '../db/access/project.ts';
import { connectDatabase, type Db } from '../db/connect.ts';
import { takeLock } from '../db/locks.ts';
import { migrate } from '../db/migrate.ts';
import { newId } from '../parts/ids.ts';
import { generateKey, verifyKey } from './access/key-text.ts';

// The first start makes the project `default` and a key with all scopes, in a file that only the owner can read. Later
// starts return both, as long as the key works; otherwise a new key replaces it. Processes that start in parallel take
// turns.

interface DefaultAccess {
  readonly project_id: string;
  readonly api_key: string;
}

async function writeSecret(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  const incoming = `${file}.${randomUUID()}`;
  await writeFile(incoming, `${text}\n`, { mode: 0o600, flag: 'wx' });
  await rename(incoming, file);
}

async function reuseKey(db: Db, file: string, projectId: string): Promise<string | null> {
  const text = await readFile(file, 'utf8').then(
    (content) => content.trim(),
    () => null,
  );
  const holder = text === null ? null : await verifyKey(db, text);
  if (holder === null || !holder.projects.includes(projectId)) return null;
  if (!holder.scopes.has('admin') || !holder.scopes.has('operator')) return null;
  await chmod(file, 0o600);
  return text;
}

async function makeKey(db: Db, defaultProject: string): Promise<string> {
  const { key, ...parts } = generateKey('dev');
  const others = (await listProjectIds(db)).filter((id) => id !== defaultProject);
  const projects = [defaultProject, ...others];
  const facts = { name: 'default', scopes: Scope.options, projects, created_by: null, expires_at: null };
  await insertKey(db, { ...parts, ...facts });
  return key;
}

/** @param options apiKeyFile: where the key is kept, mode 0600 */
export function ensureDefaultProject(db: Db, { apiKeyFile }: { apiKeyFile: string }): Promise<DefaultAccess> {
  return db.transaction(async (trx) => {
    await takeLock(trx, 'setup');
    const newProject = {
      project_id: newId('project'),
      name: 'default',
      timezone: 'UTC',
      daily_limit_nano: 0n,
    };
    const { project_id } =
      (await findOldestProject(trx, 'default')) ?? (await insertProject(trx, newProject));
    const reused = await reuseKey(trx, apiKeyFile, project_id);
    if (reused !== null) return { project_id, api_key: reused };
    const api_key = await makeKey(trx, project_id);
    await writeSecret(apiKeyFile, api_key);
    return { project_id, api_key };
  });
}

/** Migrates an existing database to the newest schema, with a project and a key to begin with. Repeatable. */
export async function prepareDatabase(
  databaseUrl: string,
  options: { apiKeyFile: string },
): Promise<DefaultAccess> {
  await migrate(databaseUrl);
  const db = connectDatabase(databaseUrl, 2);
  try {
    return await ensureDefaultProject(db, options);
  } finally {
    await db.destroy();
  }
}
