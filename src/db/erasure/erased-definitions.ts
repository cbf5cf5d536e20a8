/** Definitions are stored once per text, whoever submits it: one goes with the last run or version that names it. */
import type { Db } from '../connect.ts';
import type { RowCounts } from '../retention/run-parts.ts';

/** @param digests that the rows named that have just been deleted */
export async function deleteUnnamed(trx: Db, digests: readonly string[]): Promise<number> {
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `delete from definition d where digest = any (?)
       and not exists (select from run r where r.digest = d.digest)
       and not exists (select from pipeline_version v where v.digest = d.digest)`,
    [[...new Set(digests)]],
  );
  return rowCount;
}

/** Stored pipelines, whose aliases have gone. */
export async function eraseVersions(trx: Db, projectId: string, limit: number): Promise<RowCounts> {
  const { rows } = await trx.raw<{ rows: { digest: string }[] }>(
    `delete from pipeline_version where ctid = any (array(
       select ctid from pipeline_version where project_id = ? limit ?)) returning digest`,
    [projectId, limit],
  );
  const definition = await deleteUnnamed(
    trx,
    rows.map(({ digest }) => digest),
  );
  return { pipeline_version: rows.length, definition };
}
