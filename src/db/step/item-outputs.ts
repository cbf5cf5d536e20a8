/** The outputs of a step's items as one list, a page at a time. */
import type { Json } from '../../contracts/primitives.ts';
import type { Db } from '../connect.ts';

export interface ItemOutputPage {
  readonly run_id: string;
  readonly step_id: string;
  /** The last item of the page before; 0 = none. */
  readonly after: number;
  readonly limit: number;
  /** A page ends with the item that brings it to so many bytes of JSON text. */
  readonly bytes: number;
}

export interface ItemOutputRow {
  readonly item: number;
  /** Null too where it is not on the page. */
  readonly output: Json;
  readonly is_on_page: boolean;
}

/** Those of at most `limit` items that have an output, in order. */
export async function listItemOutputs(db: Db, page: ItemOutputPage): Promise<readonly ItemOutputRow[]> {
  const { rows } = await db.raw<{ rows: ItemOutputRow[] }>(
    `select item, before < :bytes as is_on_page, case when before < :bytes then output end as output
     from (
       select item, output, coalesce(sum(octet_length(output::text)) over (
           order by item rows between unbounded preceding and 1 preceding), 0) as before
       from step where run_id = :run_id and step_id = :step_id
         and item > :after and item <= :after::int + :limit::int and output is not null
     ) s order by item`,
    { ...page },
  );
  return rows;
}
