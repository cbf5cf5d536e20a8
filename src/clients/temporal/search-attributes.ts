/** A namespace gets its search attributes when it is made; those that a later version needs, or an emptied one, are added here. */
import type { Connection } from '@temporalio/client';
import { searchAttributes } from '../../core/workflow-payloads/search-attributes.ts';

/** `IndexedValueType` of the Temporal API. */
const valueTypes = { Keyword: 2, Int: 3, Double: 4, Bool: 5 } as const;

/** @returns names, none when all are there */
export async function findMissingSearchAttributes(
  connection: Connection,
  namespace: string,
): Promise<(keyof typeof searchAttributes)[]> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
  const names = Object.keys(searchAttributes) as (keyof typeof searchAttributes)[];
  return names.filter((name) => customAttributes?.[name] === undefined);
}

/** @returns which were added */
export async function addMissingSearchAttributes(
  connection: Connection,
  namespace: string,
): Promise<readonly string[]> {
  const missing = await findMissingSearchAttributes(connection, namespace);
  if (missing.length === 0) return [];
  const added = Object.fromEntries(missing.map((name) => [name, valueTypes[searchAttributes[name]]]));
  await connection.operatorService.addSearchAttributes({ namespace, searchAttributes: added });
  return missing;
}
