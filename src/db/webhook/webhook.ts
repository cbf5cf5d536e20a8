/** Who is told of what happens in a project. */
import type { WebhookEvent } from '../../contracts/webhook.ts';
import type { Db } from '../connect.ts';

export interface WebhookRow {
  readonly webhook_id: string;
  readonly project_id: string;
  readonly url: string;
  readonly events: readonly WebhookEvent[];
  readonly secret: string;
  readonly created_by: string;
  readonly created_at: Date;
}

export type NewWebhook = Omit<WebhookRow, 'created_at'>;

/** Undefined when the project has `most` of them. */
export async function insertWebhook(
  db: Db,
  { webhook_id, project_id, url, events, secret, created_by }: NewWebhook,
  most: number,
): Promise<WebhookRow | undefined> {
  const { rows } = await db.raw<{ rows: WebhookRow[] }>(
    `insert into webhook (webhook_id, project_id, url, events, secret, created_by)
     select ?, ?, ?, ?, ?, ? where (select count(*) from webhook where project_id = ?) < ? returning *`,
    [webhook_id, project_id, url, [...events], secret, created_by, project_id, most],
  );
  return rows[0];
}

/** Oldest first. */
export async function listWebhooks(
  db: Db,
  project_id: string,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<readonly WebhookRow[]> {
  const { rows } = await db.raw<{ rows: WebhookRow[] }>(
    `select * from webhook where project_id = ? and webhook_id > coalesce(?, '') order by webhook_id limit ?`,
    [project_id, after, limit],
  );
  return rows;
}

export function findWebhook(db: Db, project_id: string, webhook_id: string): Promise<WebhookRow | undefined> {
  return db('webhook').where({ project_id, webhook_id }).first('*');
}

/** With its deliveries. False: there was none. */
export async function deleteWebhook(db: Db, project_id: string, webhook_id: string): Promise<boolean> {
  return (await db('webhook').where({ project_id, webhook_id }).delete()) > 0;
}
