/** Holds an answer to its description in the document. */

import type { Problem } from '@capstan/core/contracts/problem';
import Ajv, { type ValidateFunction } from 'ajv/dist/2020.js';
import type { JsonSchema, OpenApiDocument, Operation } from './document.ts';

export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

/** @returns deviations from the document; null when there is none */
export type JudgeAnswer = (operation: Operation, answer: Answer) => string | null;

type Validators = (schema: JsonSchema) => ValidateFunction;

/** Compiles the schemas of the document when they are first asked for: each text once, for every place that has it. */
export function createValidators(document: OpenApiDocument): Validators {
  const code = { optimize: false }; // would take longer than it saves
  const ajv = new Ajv.Ajv2020({ strict: false, validateFormats: false, allErrors: true, code });
  ajv.addSchema(document as object, 'api');
  const [byText, bySchema] = [new Map<string, ValidateFunction>(), new Map<JsonSchema, ValidateFunction>()];
  return (schema) => {
    const known = bySchema.get(schema);
    if (known !== undefined) return known;
    const text = JSON.stringify(schema).replaceAll('"#/components', '"api#/components');
    const validate = byText.get(text) ?? ajv.compile(JSON.parse(text));
    byText.set(text, validate);
    bySchema.set(schema, validate);
    return validate;
  };
}

export function createJudge(validatorOf: Validators): JudgeAnswer {
  const findBodyFault = (operation: Operation, { status, type, text }: Answer): string | null => {
    const content = operation.responses[status]?.content;
    if (content === undefined) return text === '' ? null : `${status} has a body, and none is documented`;
    if (operation.method === 'HEAD') return text === '' ? null : 'HEAD has a body';
    const documented = content[type];
    if (documented === undefined && content['*/*'] === undefined)
      return `${status} is ${type}; documented: ${Object.keys(content).join(', ')}`;
    if (!/[/+]json\b/.test(type)) return null;
    if (documented === undefined) return `no schema of ${type} for ${status}`;
    const validate = validatorOf(documented.schema);
    if (validate(JSON.parse(text))) return null;
    const faults = (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
    return `${status} does not match its schema: ${faults.join(', ').slice(0, 500)}`;
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
