/** The issues of a schema in words for those who sent the value. */
import { jsonTypeOf } from './values.ts';

const typeNames: Readonly<Record<string, string>> = {
  record: 'an object',
  object: 'an object',
  array: 'a list',
  int: 'a whole number',
  null: 'nothing (null)',
};

/** `a string`, of a type of JSON or of a schema. */
export function nameType(type: string): string {
  return typeNames[type] ?? `a ${type}`;
}

/** What zod gives. */
interface RawIssue {
  readonly code?: string | undefined;
  readonly input?: unknown;
  readonly expected?: string;
  readonly values?: readonly unknown[];
}

const shownValues = 20;

/** In words for a sender: what is missing, or allowed. Values that were sent are not repeated. Undefined: zod's. */
function wordIssue({ code, input, expected = '', values = [] }: RawIssue): string | undefined {
  if (code !== 'invalid_type' && code !== 'invalid_value' && code !== 'invalid_union') return undefined;
  if (input === undefined) return 'is required';
  if (code === 'invalid_union') return undefined;
  if (code === 'invalid_type')
    return `expected ${nameType(expected)}, found ${nameType(jsonTypeOf(input) ?? 'text')}`;
  const more = values.length > shownValues ? ', …' : '';
  const allowed = values.slice(0, shownValues).map(String).join(', ');
  return `expected ${values.length > 1 ? 'one of ' : ''}${allowed}${more}`;
}

/** For the parse of what others sent. */
export const wording = { error: wordIssue };
