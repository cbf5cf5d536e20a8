/** Ties between keys, people and a project that goes. A key that holds nothing else goes with it; a person never does. */
import type { Db } from '../connect.ts';

/** Bound: `projectId`. */
export const keysOfProjectAlone = `projects = array[:projectId::text]
  and not exists (select from person p where p.key_id = api_key.key_id)`;

/** Keys that hold other projects keep those; the others stop, and their sessions end. */
export async function untieKeys(
  trx: Db,
  { projectId, pseudonym }: { readonly projectId: string; readonly pseudonym: string },
): Promise<void> {
  const names = { projectId, pseudonym };
  await trx.raw(
    `update api_key set revoked_at = coalesce(revoked_at, now()) where ${keysOfProjectAlone}`,
    names,
  );
  await trx.raw(
    `update api_key set projects = case when cardinality(array_remove(projects, :projectId::text)) = 0
       then array[:pseudonym::text] else array_remove(projects, :projectId::text) end
     where :projectId::text = any (projects) and not (${keysOfProjectAlone})`,
    names,
  );
  await trx.raw(
    `update person set grants = (select coalesce(jsonb_agg(jsonb_set(g, '{projects}', (g -> 'projects') - :projectId::text)),
       '[]') from jsonb_array_elements(grants) g) where strpos(grants::text, :projectId) > 0`,
    names,
  );
  for (const table of ['session', 'login_code'])
    await trx.raw(
      `delete from ${table} where key_id in (select key_id from api_key where ${keysOfProjectAlone})`,
      names,
    );
}

/** Those that go with the project. */
export async function listKeysOfProject(db: Db, projectId: string): Promise<readonly string[]> {
  const { rows } = await db.raw<{ rows: { key_id: string }[] }>(
    `select key_id from api_key where ${keysOfProjectAlone}`,
    { projectId },
  );
  return rows.map(({ key_id }) => key_id);
}

export async function deleteKeys(trx: Db, keyIds: readonly string[]): Promise<number> {
  const ids = [...keyIds];
  for (const table of ['session', 'login_code']) await trx(table).whereIn('key_id', ids).delete();
  await trx('api_key').whereIn('created_by', ids).update({ created_by: null });
  await trx('publisher').whereIn('set_by', ids).update({ set_by: 'erased' });
  for (const table of ['webhook', 'schedule'])
    await trx(table).whereIn('created_by', ids).update({ created_by: 'erased' });
  return trx('api_key').whereIn('key_id', ids).delete();
}
