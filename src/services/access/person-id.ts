/**
 * The name by which a person stands in reviews, decisions and the audit log: `user:anna@example.org`. It is given at the
 * first sign-in and stays, whatever the provider calls them later.
 */
import { hash } from 'node:crypto';
import type { Identity } from '../../clients/oidc/identity.ts';
import { findTakenIds } from '../../db/access/person.ts';
import type { Db } from '../../db/connect.ts';

const prefix = 'user:';
/** What stands in addresses and in queries of the audit log. */
const shown = /^[!-~]{1,100}$/;

export function isPersonId(id: string): boolean {
  return id.startsWith(prefix);
}

function wantedId({ email, subject, issuer }: Identity): string {
  const name = [email, subject].find((text) => text !== null && shown.test(text));
  return `${prefix}${name ?? hash('sha256', `${issuer} ${subject}`).slice(0, 24)}`;
}

/** Another person with the same address is `…#2`: an address that is given to somebody else gives them nothing. */
export async function choosePersonId(trx: Db, identity: Identity): Promise<string> {
  const wanted = wantedId(identity);
  const names = [wanted, ...Array.from({ length: 98 }, (_, at) => `${wanted}#${at + 2}`)];
  const taken = await findTakenIds(trx, names);
  return names.find((name) => !taken.includes(name)) ?? `${wanted}#${hash('sha256', identity.subject)}`;
}
