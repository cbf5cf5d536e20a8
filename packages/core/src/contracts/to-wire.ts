/**
 * Shows rows as the wire does, by the schema of the response. Columns and wire fields have the same names, so a field
 * needs no line of its own. Three rules apply everywhere: a time becomes its ISO text; a column that the schema does
 * not know is dropped; and so is null, or an absent value, where the schema has `optional`.
 */
import { z } from 'zod';

type FromRow<Value> = Value extends readonly (infer Item)[]
  ? readonly Item[]
  : string extends Value
    ? Value | Date
    : Value;

/** The row must hold these columns; it may hold more. */
type Presentable<Shown> = {
  readonly [Key in keyof Required<Shown>]:
    | FromRow<Exclude<Shown[Key], undefined>>
    | (undefined extends Shown[Key] ? null | undefined : never);
};

function wireValue(value: unknown): unknown {
  return value instanceof Date ? value.toISOString() : value;
}

export function toWire<Schema extends z.ZodObject>(
  schema: Schema,
  row: Presentable<z.output<Schema>>,
): z.output<Schema> {
  const columns = row as Readonly<Record<string, unknown>>;
  const shown: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(schema.shape)) {
    const value = columns[name];
    const isLeftOut = field instanceof z.ZodOptional ? value === null || value === undefined : false;
    if (!isLeftOut) shown[name] = wireValue(value);
  }
  return shown as z.output<Schema>;
}
