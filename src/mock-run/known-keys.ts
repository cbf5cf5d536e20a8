/** The keys that a contract knows at a place in a document, for "did you mean". */
import type { z } from 'zod';

interface Definition {
  readonly type: string;
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly innerType?: z.ZodType;
  readonly element?: z.ZodType;
  readonly valueType?: z.ZodType;
  readonly options?: readonly z.ZodType[];
}

/** Keys and list positions from the root; a place that the contract does not know has none. */
export function knownKeys(contract: z.ZodType, path: readonly PropertyKey[]): string[] {
  return [...new Set(branches(contract, path).flatMap(({ shape }) => Object.keys(shape ?? {})))];
}

/** What may stand at the place: several where the contract is a union. */
function branches(contract: z.ZodType, path: readonly PropertyKey[]): Definition[] {
  const definition = contract.def as unknown as Definition;
  if (definition.innerType !== undefined) return branches(definition.innerType, path);
  if (definition.options !== undefined) return definition.options.flatMap((one) => branches(one, path));
  const [key, ...rest] = path;
  if (key === undefined) return [definition];
  const next = definition.shape?.[String(key)] ?? definition.element ?? definition.valueType;
  return next === undefined ? [] : branches(next, rest);
}
