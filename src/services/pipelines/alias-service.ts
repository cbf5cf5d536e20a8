/** Aliases of pipeline versions: `production` means 1.4 today and 1.5 tomorrow. */
import type { Alias } from '../../contracts/pipeline.ts';
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
    /** Repeated, it changes nothing. @throws AppError `not_found`, `request_invalid` for `latest` */
    set: async (key: VersionKey, alias: string): Promise<Alias> => {
      if (alias === 'latest') {
        const message = 'latest always is the version that was stored last; choose another name';
        throw new AppError('request_invalid', message, {
          errors: [{ pointer: '/path/alias', code: 'reserved', message }],
        });
      }
      const row = await setAlias(db, key, alias);
      if (row !== undefined) return toAlias(row);
      throw new AppError('not_found', `no version ${key.version} of a pipeline ${key.pipeline}`);
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
