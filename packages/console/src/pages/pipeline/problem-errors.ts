import { AnswerError } from '../../api/problem-error.ts';
import type { SchemaPointerError } from '../../api/schema-pointer-error.ts';

/** The field errors of a refusal, as pointers into the value below `prefix`. */
export function toPointerErrors(error: unknown, prefix: string): readonly SchemaPointerError[] {
  const errors = error instanceof AnswerError ? (error.problem.errors ?? []) : [];
  return errors.map(({ pointer, message }) => ({
    pointer: pointer.startsWith(prefix) ? pointer.slice(prefix.length) : pointer,
    message,
  }));
}
