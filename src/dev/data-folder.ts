/** The folder in which an embedded stack keeps everything. */
import { chmodSync, mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { canReach, chooseAccount } from './postgres/account.ts';

/** Under root, Postgres is another user and must be able to pass; the files inside are closed to others. */
function folderMode(): number {
  return chooseAccount() === null ? 0o700 : 0o711;
}

/** @returns its absolute path */
export function createDataFolder(path: string): string {
  const folder = resolve(path);
  mkdirSync(folder, { recursive: true, mode: folderMode() });
  return folder;
}

/** A new folder that everybody who has to can reach; the caller removes it. @param preferred where it is made if possible */
export function createTemporaryFolder(prefix: string, preferred: readonly string[] = []): string {
  const account = chooseAccount();
  const places = [...preferred, tmpdir(), '/tmp', '/var/tmp'];
  const place = places.find((entry) => account === null || canReach(entry, account)) ?? tmpdir();
  const folder = mkdtempSync(join(place, prefix));
  chmodSync(folder, folderMode());
  return folder;
}
