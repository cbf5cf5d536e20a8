/** Holds an answer to what the document says of it. */
import Ajv from 'ajv/dist/2020.js';
import type { Problem } from '../../../src/contracts/problem.ts';
import type { JsonSchema, OpenApiDocument, Operation } from './document.ts';

export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

function pointerOf(...names: readonly string[]): string {
  return names
    .map((name) => `/${encodeURIComponent(name.replace(/~/g, '~0').replace(/\//g, '~1'))}`)
    .join('');
}

/** @returns what is not as the document says; null when all is */
export type JudgeAnswer = (operation: Operation, answer: Answer) => string | null;

function createAjv(document: OpenApiDocument) {
  const ajv = new Ajv.Ajv2020({ strict: false, validateFormats: false, allErrors: true });
  return ajv.addSchema(document as object, 'api');
}

/** Whether a schema of the document allows a value. */
export function createAllows(document: OpenApiDocument): (schema: JsonSchema, value: unknown) => boolean {
  const ajv = createAjv(document);
  const compiled = new Map<JsonSchema, (value: unknown) => boolean>();
  return (schema, value) => {
    const text = JSON.stringify(schema).replaceAll('"#/components', '"api#/components');
    const validate = compiled.get(schema) ?? ajv.compile(JSON.parse(text));
    compiled.set(schema, validate);
    return validate(value);
  };
}

export function createJudge(document: OpenApiDocument): JudgeAnswer {
  const ajv = createAjv(document);

  const findBodyFault = (operation: Operation, { status, type, text }: Answer): string | null => {
    const content = operation.responses[status]?.content;
    if (content === undefined) return text === '' ? null : `${status} has a body, and none is documented`;
    if (operation.method === 'HEAD') return text === '' ? null : 'HEAD has a body';
    if (content[type] === undefined && content['*/*'] === undefined)
      return `${status} is ${type}; documented: ${Object.keys(content).join(', ')}`;
    if (!/[/+]json\b/.test(type)) return null;
    const { path, method } = operation;
    const at = pointerOf('paths', path, method.toLowerCase(), 'responses', String(status), 'content', type);
    const validate = ajv.getSchema(`api#${at}/schema`);
    if (validate === undefined) return `no schema at ${at}`;
    if (validate(JSON.parse(text))) return null;
    return `${status} does not match its schema: ${ajv.errorsText(validate.errors).slice(0, 500)}`;
  };

  return (operation, answer) =>
    operation.responses[answer.status] === undefined
      ? `${answer.status} is not documented`
      : findBodyFault(operation, answer);
}

/** Of a request that the document allows, whatever it names: the rule that refused its form, with its place. */
export function findRefusal({ status, text }: Answer): string | null {
  if (status !== 400 && status !== 415 && status !== 422) return null;
  if (text === '') return 'no body';
  const { code, errors = [] } = JSON.parse(text) as Problem;
  const ofForm = [
    'malformed_json',
    'json_too_deep',
    'proto_key',
    'unsupported_media_type',
    'request_invalid',
  ];
  if (!ofForm.includes(code)) return null;
  const [first] = errors;
  return first === undefined ? code : `${first.pointer.replace(/\/\d+/g, '/*')} ${first.code}`;
}
