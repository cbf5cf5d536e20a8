/**
 * What a skill knows of the correction itself. Text that starts with `[` is a JSON Patch, anything else (also text that
 * starts with an expression) is literal text, for jobs that are not steps. A merge patch is refused: it cannot say what
 * it expects to find. String leaves may hold expressions over `input` and `match`.
 */
import type { Json } from '../../../contracts/primitives.ts';
import { skillDialect } from '../../expression/dialect.ts';
import type { ExpressionSyntaxError } from '../../expression/errors.ts';
import { hasReference } from '../../expression/references.ts';
import { type CompiledTemplate, readTemplate, type TemplateReading } from '../../expression/template.ts';
import { type PatchOperation, readPatch } from './json-patch.ts';

/** Values are compiled; paths are as they stand. */
export type TemplateOperation = PatchOperation<CompiledTemplate>;

export type SkillTemplate =
  | { readonly kind: 'patch'; readonly operations: readonly TemplateOperation[] }
  | { readonly kind: 'text'; readonly text: CompiledTemplate };

export type TemplateParsing =
  | { readonly ok: true; readonly template: SkillTemplate }
  | { readonly ok: false; readonly message: string };

export function parseTemplate(text: string): TemplateParsing {
  const start = text.trimStart();
  if (start.startsWith('[')) return parseJsonTemplate(text);
  if (start.startsWith('{') && !start.startsWith('{{')) return { ok: false, message: mergeRefusal };
  if (start === '') return { ok: false, message: 'the template is empty' };
  const reading = readValue(text, '');
  return ifSound(reading, { kind: 'text', text: reading.template });
}

const mergeRefusal =
  'a template that starts with { is no JSON Patch: send a list such as [{"op":"test","path":"/rate","value":"44.1k"},{"op":"replace","path":"/rate","value":44100}]';

function parseJsonTemplate(text: string): TemplateParsing {
  try {
    return parsePatch(JSON.parse(text));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const message = `a template that starts like a JSON Patch has to be JSON: ${error.message.slice(0, 200)}`;
    return { ok: false, message };
  }
}

function parsePatch(value: Json): TemplateParsing {
  const patch = readPatch(value);
  if (!patch.ok) return patch;
  const errors: ExpressionSyntaxError[] = [];
  const operations = patch.operations.map((operation, index): TemplateOperation => {
    if (!('value' in operation)) return operation;
    const reading = readValue(operation.value, `/${index}/value`);
    errors.push(...reading.errors);
    return { ...operation, value: reading.template };
  });
  return ifSound({ errors }, { kind: 'patch', operations });
}

function readValue(value: Json, pointer: string): TemplateReading {
  return readTemplate(value, pointer, skillDialect);
}

function ifSound(
  { errors }: { readonly errors: readonly ExpressionSyntaxError[] },
  template: SkillTemplate,
): TemplateParsing {
  const [first] = errors;
  if (first === undefined) return { ok: true, template };
  const hint = first.suggestion === undefined ? '' : `; ${first.suggestion}`;
  const place = first.pointer === '' ? '' : ` in ${first.pointer}`;
  return { ok: false, message: `${first.message} (at character ${first.offset}${place})${hint}` };
}

/** Whether the value follows from the input or the error, rather than being one and the same every time. */
export function isDerived(value: Json): boolean {
  return hasReference(readValue(value, '').template);
}

/** The form in which a template holds exactly this value, whatever its strings look like. */
export function quoteValue(value: Json): Json {
  const { template, errors } = readValue(value, '');
  const isKept = errors.length === 0 && template.root.kind === 'literal' && template.root.value === value;
  return isKept ? value : { $literal: value };
}
