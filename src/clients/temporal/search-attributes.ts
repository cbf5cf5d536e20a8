/** A namespace gets its search attributes when it is made; those that a later version needs, or an emptied one, are added here. */

import { searchAttributes } from '@capstan/core/workflow-names';
import type { Connection } from '@temporalio/client';
import { type Bounded, hasStatus } from './connection.ts';

/** `IndexedValueType` of the Temporal API. */
const valueTypes = { Keyword: 2, Int: 3, Double: 4, Bool: 5 } as const;

/** Temporal Cloud's answer to a key that is no operator's. */
const refusals = ['permissionDenied', 'unimplemented'] as const;

type Name = keyof typeof searchAttributes;

/** Lists the registered attributes; null where Temporal does not answer: Temporal Cloud answers operators alone. */
async function listRegistered(connection: Connection, namespace: string): Promise<readonly string[] | null> {
  try {
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
    return Object.keys(customAttributes ?? {});
  } catch (error) {
    if (hasStatus(error, ...refusals)) return null;
    throw error;
  }
}

/** Anybody who may count workflows can see it: a query by what is not registered is refused. */
async function isKnownToQueries(connection: Connection, namespace: string, name: Name): Promise<boolean> {
  const query = `${name} is not null`;
  try {
    await connection.workflowService.countWorkflowExecutions({ namespace, query });
    return true;
  } catch (error) {
    if (hasStatus(error, 'invalidArgument')) return false;
    throw error;
  }
}

/** @returns the missing names */
export async function findMissingSearchAttributes(
  connection: Connection,
  namespace: string,
): Promise<Name[]> {
  const names = Object.keys(searchAttributes) as Name[];
  const registered = await listRegistered(connection, namespace);
  if (registered !== null) return names.filter((name) => !registered.includes(name));
  const known = await Promise.all(names.map((name) => isKnownToQueries(connection, namespace, name)));
  return names.filter((_, at) => !known[at]);
}

/** @returns which were added @throws Error with the remedy where only Temporal's own tools may */
export async function addMissingSearchAttributes(
  connection: Connection,
  namespace: string,
): Promise<readonly string[]> {
  const missing = await findMissingSearchAttributes(connection, namespace);
  if (missing.length === 0) return [];
  const added = Object.fromEntries(missing.map((name) => [name, valueTypes[searchAttributes[name]]]));
  try {
    await connection.operatorService.addSearchAttributes({ namespace, searchAttributes: added });
  } catch (error) {
    if (!hasStatus(error, ...refusals)) throw error;
    const list = missing.map((name) => `${name}=${searchAttributes[name]}`).join(', ');
    throw new Error(
      `Temporal lets this key register no search attributes: register ${list} in namespace ${namespace} by its own tools`,
      { cause: error },
    );
  }
  return missing;
}

/** Attributes that are missing are looked for again after this time. */
const notRegisteredMs = 60_000;

/** Whether the namespace has all of them: asked until it has, at most once a minute. */
export function createSearchability(connection: Connection, namespace: string, bounded: Bounded) {
  let known: Promise<boolean> | null = null;
  const askAgain = (): void => {
    known = null;
  };
  const ask = async (): Promise<boolean> => {
    const missing = await bounded(() => findMissingSearchAttributes(connection, namespace));
    if (missing.length > 0) setTimeout(askAgain, notRegisteredMs).unref();
    return missing.length === 0;
  };
  return (): Promise<boolean> => {
    known ??= ask().catch((error: unknown) => {
      askAgain();
      throw error;
    });
    return known;
  };
}
