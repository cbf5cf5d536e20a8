/**
 * The OpenAPI document as generators of clients understand it. They turn each schema into one type, so whatever narrows
 * a value beyond its type is left out, and the server alone checks it. Bytes of any kind are `application/octet-stream`.
 * A body that may be JSON is JSON. Tried with openapi-python-client, oapi-codegen and openapi-typescript:
 * `npm run openapi:check`.
 */

type Node = { readonly [key: string]: unknown };

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function mapValues(node: unknown, change: (value: unknown, key: string) => unknown): Node {
  if (!isNode(node)) return {};
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, change(value, key)]));
}

/** Keywords that restrict a value without naming a type. */
const restrictions = new Set([
  'not',
  'if',
  'then',
  'else',
  'propertyNames',
  'dependentRequired',
  'dependentSchemas',
]);

/** Keywords that hold schemas by name. */
const named = new Set(['properties', 'patternProperties', '$defs']);

/** Keywords that hold schemas, alone or in a list. */
const nested = new Set(['items', 'prefixItems', 'additionalProperties', 'anyOf', 'oneOf', 'allOf']);

/** A combination of rules beside a type, such as "give one of the two", describes no type of its own. */
function isRule(key: string, { type }: Node): boolean {
  return type !== undefined && (key === 'anyOf' || key === 'oneOf' || key === 'allOf');
}

function simplify(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(simplify);
  if (!isNode(schema)) return schema;
  const kept = Object.entries(schema)
    .filter(([key]) => !restrictions.has(key) && !isRule(key, schema))
    .map(([key, value]): [string, unknown] => {
      if (named.has(key)) return [key, mapValues(value, simplify)];
      return [key, nested.has(key) ? simplify(value) : value];
    });
  return spreadTypes(Object.fromEntries(kept));
}

/** `type: [string, number]` becomes a union; `[string, null]` stays, because generators know it. */
function spreadTypes(schema: Node): Node {
  const { type, ...rest } = schema;
  if (!Array.isArray(type) || type.filter((one) => one !== 'null').length < 2) return schema;
  return { ...rest, anyOf: type.map((one) => ({ type: one })) };
}

function isJson(contentType: string): boolean {
  return /[/+]json$/.test(contentType);
}

const bytes = { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } };

function simplifyContent(content: unknown): Node {
  const forms = Object.entries(mapValues(content, (form) => form)).filter(([type]) => isJson(type));
  if (forms.length === 0) return bytes;
  return Object.fromEntries(
    forms.map(([type, form]) => [type, isNode(form) ? { ...form, schema: simplify(form.schema) } : form]),
  );
}

function simplifyHolder(holder: unknown): unknown {
  if (!isNode(holder) || holder.content === undefined) return holder;
  return { ...holder, content: simplifyContent(holder.content) };
}

/** A constant of a parameter is a text for its caller. */
function simplifyParameter(parameter: unknown): unknown {
  if (!isNode(parameter) || !isNode(parameter.schema)) return parameter;
  const { const: _, ...schema } = parameter.schema;
  return { ...parameter, schema: simplify(schema) };
}

function simplifyOperation(operation: unknown): unknown {
  if (!isNode(operation) || operation.operationId === undefined) return operation;
  const { parameters, requestBody, responses } = operation;
  return {
    ...operation,
    ...(Array.isArray(parameters) ? { parameters: parameters.map(simplifyParameter) } : {}),
    ...(requestBody === undefined ? {} : { requestBody: simplifyHolder(requestBody) }),
    responses: mapValues(responses, simplifyHolder),
  };
}

/** @param document an OpenAPI document as JSON @returns a new document; the given one is unchanged */
export function toGeneratorDocument(document: Node): Node {
  const { components, paths } = document;
  return {
    ...document,
    paths: mapValues(paths, (operations) => mapValues(operations, simplifyOperation)),
    components: mapValues(components, (part, name) =>
      name === 'schemas' ? mapValues(part, simplify) : part,
    ),
  };
}
