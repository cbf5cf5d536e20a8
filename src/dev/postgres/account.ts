/**
 * Postgres refuses to run as root. Under root it runs as `nobody` (or `postgres` where there is no nobody),
 * which then must be able to reach its programs and its data: a home folder of mode 0700 keeps it out.
 */
import { readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

export interface Account {
  readonly uid: number;
  readonly gid: number;
}

function readAccount(name: string): Account | null {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith(`${name}:`));
  const [, , uid, gid] = line?.split(':') ?? [];
  return uid === undefined || gid === undefined ? null : { uid: Number(uid), gid: Number(gid) };
}

/** Null when Postgres may run as the current user. @throws Error when root has no other user to offer */
export function chooseAccount(): Account | null {
  if (process.getuid?.() !== 0) return null;
  const account = readAccount('nobody') ?? readAccount('postgres');
  if (account !== null) return account;
  throw new Error(
    'Postgres refuses to run as root, and /etc/passwd names neither nobody nor postgres: ' +
      'start Capstan as an ordinary user, or set DATABASE_URL to a Postgres of yours',
  );
}

/** Whether the account may enter this folder and every folder above it. */
export function canReach(folder: string, account: Account): boolean {
  const { mode, uid, gid } = statSync(folder);
  const bit = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001;
  if ((mode & bit) === 0) return false;
  const parent = dirname(resolve(folder));
  return parent === resolve(folder) || canReach(parent, account);
}
