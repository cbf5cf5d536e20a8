/** Keys of a database that was restored, beside what is known to have been done to keys. */
import type { Db } from '../connect.ts';

export interface KeyAct {
  readonly entry_id: string;
  readonly action: 'key.created' | 'key.revoked' | 'key.rotated';
  /** The key. */
  readonly subject: string;
}

/** Ids of keys to which something was done that the database does not know. */
export interface LostKeyActs {
  /** Made after the backup, and not revoked since: they do not work any more. */
  readonly made: readonly string[];
  /** Revoked after the backup: they work again. */
  readonly revoked: readonly string[];
  /** Their secret was replaced after the backup: the one before works again, the new one does not. */
  readonly rotated: readonly string[];
}

/** Revocations are for ever and ids are used once, so the state says what is missing; rotations stand in the audit log. */
export async function compareKeys(db: Db, acts: readonly KeyAct[]): Promise<LostKeyActs> {
  const { rows } = await db.raw<{ rows: [LostKeyActs] }>(
    `with act as (
       select * from jsonb_to_recordset(?::jsonb) a (entry_id text, action text, subject text)
     ), revoked as (select distinct subject from act where action = 'key.revoked')
     select array(select distinct a.subject from act a where a.action = 'key.created'
         and a.subject not in (select subject from revoked)
         and not exists (select from api_key k where k.key_id = a.subject) order by 1) as made,
       array(select k.key_id from revoked r join api_key k on k.key_id = r.subject
         where k.revoked_at is null order by 1) as revoked,
       array(select distinct k.key_id from act a join api_key k on k.key_id = a.subject
         where a.action = 'key.rotated' and k.revoked_at is null and a.subject not in (select subject from revoked)
           and not exists (select from audit u where u.action = a.action and u.subject = a.subject
             and u.entry::text = a.entry_id) order by 1) as rotated`,
    [JSON.stringify(acts)],
  );
  return rows[0];
}
