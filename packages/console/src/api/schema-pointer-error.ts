export interface SchemaPointerError {
  readonly pointer: string;
  readonly message: string;
}
