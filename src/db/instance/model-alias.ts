/** Other names of a project for capabilities. */
import { mostAliases } from '@capstan/core/contracts/model-alias';
import type { ProjectRow } from '../access/project.ts';
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';

export interface ModelAliasRow {
  readonly name: string;
  readonly capability: string;
  readonly set_by: string;
  readonly updated_at: Date;
}

/** All of a project, by name; there are few. */
export function listModelAliases(db: Db, projectId: string): Promise<readonly ModelAliasRow[]> {
  return query<ModelAliasRow>(db).all(
    `select name, capability, set_by, updated_at from model_alias where project_id = ?
     order by name collate "C"`,
    [projectId],
  );
}

interface ModelRulesRow extends Pick<ProjectRow, 'is_strict' | 'on_budget'> {
  readonly aliases: Readonly<Record<string, string>> | null;
}

/** The aliases of a project, whether it is strict, and the end of its calls without room. */
export async function readModelRules(
  db: Db,
  projectId: string,
): Promise<ModelRulesRow & { readonly aliases: Readonly<Record<string, string>> }> {
  const row = await query<ModelRulesRow>(db).first(
    `select p.is_strict, p.on_budget, jsonb_object_agg(a.name, a.capability) filter (where a.name is not null) as aliases
     from project p left join model_alias a using (project_id) where project_id = ? group by p.project_id`,
    [projectId],
  );
  return {
    is_strict: row?.is_strict ?? false,
    on_budget: row?.on_budget ?? null,
    aliases: row?.aliases ?? {},
  };
}

interface NewAlias extends Omit<ModelAliasRow, 'updated_at'> {
  readonly project_id: string;
}

/** @returns undefined when the project has as many as it may have */
export function setModelAlias(
  trx: Db,
  { project_id, name, capability, set_by }: NewAlias,
): Promise<ModelAliasRow | undefined> {
  return query<ModelAliasRow>(trx).first(
    `insert into model_alias (project_id, name, capability, set_by)
     select :project_id, :name, :capability, :set_by
     where (select count(*) from model_alias where project_id = :project_id and name <> :name) < :most
     on conflict (project_id, name) do update set capability = excluded.capability, set_by = excluded.set_by,
       updated_at = clock_timestamp()
     returning name, capability, set_by, updated_at`,
    { project_id, name, capability, set_by, most: mostAliases },
  );
}

/** @returns the deleted alias */
export function deleteModelAlias(
  trx: Db,
  projectId: string,
  name: string,
): Promise<Pick<ModelAliasRow, 'capability'> | undefined> {
  return query<Pick<ModelAliasRow, 'capability'>>(trx).first(
    'delete from model_alias where project_id = ? and name = ? returning capability',
    [projectId, name],
  );
}
