/** Checks path, query, headers and body of a request together, so that one answer names everything that is wrong. */
import { z } from 'zod';
import type { ProblemItem } from '../contracts/problem.ts';
import { extendPointer } from '../core/json-pointer.ts';
import { AppError } from '../errors/app-error.ts';
import type { BodyKind } from './body-kind.ts';

const shownItems = 100;

/** A request as it came in. */
export interface RawInput {
  readonly params: unknown;
  readonly query: unknown;
  readonly headers: unknown;
  readonly body: unknown;
}

/** The schema of a part that is not looked at. */
export const Nothing = z.object({});
export type Nothing = typeof Nothing;

export interface InputSchemas {
  readonly params: z.ZodType;
  readonly query: z.ZodType;
  readonly headers: z.ZodType;
  readonly body: BodyKind;
}

function toItems(issue: z.core.$ZodIssue, prefix: string): ProblemItem[] {
  const pointer = extendPointer(prefix, ...issue.path.map(String));
  if (issue.code !== 'unrecognized_keys') return [{ pointer, code: issue.code, message: issue.message }];
  return issue.keys.slice(0, shownItems).map((key) => ({
    pointer: extendPointer(pointer, key),
    code: issue.code,
    message: 'no such field here',
  }));
}

/**
 * The parts as the schemas make them. Pointers into the body are plain (`/steps/0/id`); those of other parts
 * start with `/path`, `/query` or `/headers`.
 *
 * @throws AppError `request_invalid` with up to 100 items
 */
export function validateInput(schemas: InputSchemas, input: RawInput): RawInput {
  const items: ProblemItem[] = [];
  const check = (schema: z.ZodType, value: unknown, prefix: string): unknown => {
    if (schema === Nothing) return {};
    const parsed = schema.safeParse(value);
    if (parsed.success) return parsed.data;
    for (const issue of parsed.error.issues)
      if (items.length < shownItems) items.push(...toItems(issue, prefix));
    return undefined;
  };
  const checked = {
    params: check(schemas.params, input.params, '/path'),
    query: check(schemas.query, input.query, '/query'),
    headers: check(schemas.headers, input.headers, '/headers'),
    body: schemas.body.kind === 'json' ? check(schemas.body.schema, input.body, '') : input.body,
  };
  const [first] = items;
  if (first === undefined) return checked;
  const more = items.length > 1 ? `, and ${items.length - 1} more` : '';
  const message = `${first.pointer || 'the body'}: ${first.message}${more}`;
  throw new AppError('request_invalid', message, { errors: items.slice(0, shownItems) });
}
