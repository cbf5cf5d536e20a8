/** Aliases of pipeline versions: `production` means 1.4 today and 1.5 tomorrow. */
import type { Alias } from '../../contracts/pipeline.ts';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import type { VersionKey } from '../../db/pipeline/pipeline.ts';
import { type AliasRow, listAliases, setAlias } from '../../db/pipeline/pipeline-alias.ts';
import { AppError } from '../../errors/app-error.ts';

function toAlias({ alias, version, updated_at }: AliasRow): Alias {
  return {
    alias,
    version,
    updated_at: updated_at.toISOString(),
  };
}

export function createAliasService(db: Db) {
  return {
    /** Repeated, it changes nothing but the audit log. @param actor the key @throws AppError `not_found` */
    set: async (key: VersionKey, alias: string, actor: string): Promise<Alias> => {
      return db.transaction(async (trx) => {
        const row = await setAlias(trx, key, alias);
        const { project_id, pipeline, version } = key;
        if (row === undefined)
          throw new AppError('not_found', `no version ${version} of a pipeline ${pipeline}`);
        const subject = `${pipeline}@${alias}`;
        await insertAudit(trx, { project_id, actor, action: 'alias.set', subject, data: { version } });
        return toAlias(row);
      });
    },

    /** @throws AppError `not_found` */
    list: async (projectId: string, pipeline: string): Promise<{ items: Alias[] }> => {
      const rows = await listAliases(db, { project_id: projectId, pipeline });
      if (rows.length === 0) throw new AppError('not_found', `no pipeline ${pipeline}`);
      return { items: rows.map(toAlias) };
    },
  };
}

export type AliasService = ReturnType<typeof createAliasService>;
