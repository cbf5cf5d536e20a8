/** Requests that the document allows for an operation, and requests that break one of its rules. */
import fc from 'fast-check';
import type { JsonSchema, Operation, Parameter } from './document.ts';

export interface GeneratedRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** Of a parameter in the path: an object below this operation's path. */
export type KnownPaths = (path: string, parameter: string) => readonly string[];

interface RequestOptions {
  readonly valuesOf: (schema: JsonSchema) => fc.Arbitrary<unknown>;
  readonly knownPaths: KnownPaths;
}

function placeOf(operation: Operation, place: Parameter['in']): readonly Parameter[] {
  return operation.parameters.filter((parameter) => parameter.in === place);
}

const absent = fc.constant({});

/** How often it is given, of twelve requests: an invented cursor is refused with any other parameter. */
function shareOf(parameter: string): number {
  return parameter === 'cursor' ? 1 : 6;
}

/** A URL folds these segments away before anybody sees them. */
function isSegment(value: unknown): boolean {
  return !String(value)
    .split('/')
    .some((part) => part === '.' || part === '..' || part === '');
}

function encode(parameter: string, value: unknown): string {
  return parameter === 'file' ? String(value) : encodeURIComponent(String(value));
}

/** What a header can carry: Latin-1 that is seen, without space at its ends. */
function toHeader(value: unknown): string {
  return String(value)
    .replace(/[^ -~]/g, '~')
    .trim();
}

function textOf(body: unknown): string {
  return typeof body === 'string' ? body : JSON.stringify(body);
}

export function createRequests({ valuesOf, knownPaths }: RequestOptions) {
  const pathOf = (operation: Operation): fc.Arbitrary<string> => {
    const parameters = placeOf(operation, 'path');
    const values = parameters.map(({ name, schema }) => {
      const made = valuesOf(schema).filter(isSegment);
      const known = knownPaths(operation.path, name);
      return known.length === 0
        ? made
        : fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...known) }, { weight: 1, arbitrary: made });
    });
    return fc
      .tuple(...values)
      .map((found) =>
        parameters.reduce(
          (path, { name }, at) => path.replace(`{${name}}`, () => encode(name, found[at])),
          operation.path,
        ),
      );
  };

  const recordOf = (parameters: readonly Parameter[]): fc.Arbitrary<Record<string, unknown>> => {
    const values = parameters.map(({ name, schema, required = false }) => {
      const given = fc.record({ [name]: valuesOf(schema) });
      return required
        ? given
        : fc.oneof({ weight: shareOf(name), arbitrary: given }, { weight: 6, arbitrary: absent });
    });
    return fc.tuple(...values).map((records) => Object.assign({}, ...records) as Record<string, unknown>);
  };

  const bodyOf = ({ body }: Operation): fc.Arbitrary<{ type?: string; body?: unknown }> => {
    if (body === null) return fc.constant({});
    const kinds = Object.entries(body.content).map(([type, { schema }]) =>
      valuesOf(schema).map((value) => ({ type: type === '*/*' ? 'text/plain' : type, body: textOf(value) })),
    );
    const given = fc.oneof(...kinds);
    return body.required ? given : fc.oneof(given, fc.constant({}));
  };

  return (operation: Operation): fc.Arbitrary<GeneratedRequest> =>
    fc
      .record({
        path: pathOf(operation),
        query: recordOf(placeOf(operation, 'query')),
        headers: recordOf(placeOf(operation, 'header')),
        sent: bodyOf(operation),
      })
      .map(({ path, query, headers, sent }) => {
        const search = new URLSearchParams();
        for (const [name, value] of Object.entries(query)) search.set(name, String(value));
        const own = Object.entries(headers).map(([name, value]) => [name, toHeader(value)]);
        return {
          url: search.size === 0 ? path : `${path}?${search}`,
          method: operation.method,
          headers: Object.fromEntries(sent.type === undefined ? own : [...own, ['content-type', sent.type]]),
          body: sent.body,
        };
      });
}
