/** The dev server registers search attributes only when it makes its data; later ones are added here. */
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

export async function addMissingSearchAttributes(connection: Connection, namespace: string): Promise<void> {
  const missing = await findMissingSearchAttributes(connection, namespace);
  if (missing.length === 0) return;
  const added = Object.fromEntries(missing.map((name) => [name, valueTypes[searchAttributes[name]]]));
  await connection.operatorService.addSearchAttributes({ namespace, searchAttributes: added });
}
