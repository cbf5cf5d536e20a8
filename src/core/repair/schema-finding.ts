/** One thing that a value does wrong, as a JSON Schema validator reports it; keywords and params are ajv's. */
export interface SchemaFinding {
  /** To the field; to the missing or forbidden key itself where a key is too few or too many. */
  readonly pointer: string;
  /** Empty where the check did not come to an end. */
  readonly keyword: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message: string;
}
