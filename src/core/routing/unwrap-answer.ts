/**
 * The two forms of an answer: `{ok, output}` is unwrapped unless the spec's own output schema declares a
 * top-level `ok`; anything else is the output itself.
 */
import type { CapabilitySpec } from '../../contracts/capability.ts';
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import { resolveLocalRef } from '../foreign-schema/local-ref.ts';
import { isList, isPlainObject } from '../json-type.ts';

export type UnwrappedAnswer =
  | { readonly ok: true; readonly output: Json }
  /** The instance says that it succeeded, and nothing else. */
  | { readonly ok: true; readonly output?: never }
  /** The instance says that it failed, with a status that says otherwise. */
  | { readonly ok: false; readonly error: string };

export function unwrapAnswer(spec: Pick<CapabilitySpec, 'output'>, body: JsonObject): UnwrappedAnswer {
  const isWrapper = Object.hasOwn(body, 'ok') && !declaresOk(spec.output);
  if (isWrapper && body.ok === false && typeof body.error === 'string') {
    return { ok: false, error: body.error };
  }
  if (isWrapper && body.ok === true && Object.keys(body).length === 1) return { ok: true };
  const isWrapped = isWrapper && body.ok === true && Object.hasOwn(body, 'output');
  return { ok: true, output: isWrapped ? (body.output as Json) : body };
}

function declaresOk(root: JsonObject): boolean {
  const seen = new Set<JsonObject>();
  const visit = (schema: Json | undefined): boolean => {
    if (!isPlainObject(schema) || seen.has(schema)) return false;
    seen.add(schema);
    const { properties, required, $ref } = schema;
    if (isPlainObject(properties) && Object.hasOwn(properties, 'ok')) return true;
    if (Array.isArray(required) && required.includes('ok')) return true;
    if (typeof $ref === 'string' && visit(resolveLocalRef(root, $ref))) return true;
    const branches = [schema.allOf, schema.anyOf, schema.oneOf];
    return branches.some((list) => list !== undefined && isList(list) && list.some(visit));
  };
  return visit(root);
}
