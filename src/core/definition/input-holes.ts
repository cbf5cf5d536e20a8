/** A template as far as it is known before anything is evaluated. */
import type { Json } from '../../contracts/primitives.ts';
import type { TemplateNode } from '../expression/template.ts';
import { extendPointer } from '../json-pointer.ts';
import { isList, isPlainObject } from '../json-type.ts';

export interface PartialValue {
  /** Null stands in each hole. */
  readonly value: Json;
  /** Pointers into the value. */
  readonly holes: ReadonlySet<string>;
}

export function readPartialValue(root: TemplateNode): PartialValue {
  const holes = new Set<string>();
  const read = (node: TemplateNode, pointer: string): Json => {
    switch (node.kind) {
      case 'literal':
        return node.value;
      case 'list':
        return node.items.map((item, index) => read(item, `${pointer}/${index}`));
      case 'object':
        return Object.fromEntries(
          node.entries.map(([key, value]) => [key, read(value, extendPointer(pointer, key))]),
        );
      case 'expression':
      case 'text':
        holes.add(pointer);
        return null;
    }
  };
  return { value: read(root, ''), holes };
}

/** Where a part of the evaluated value is written: below each `$literal` on its way. */
export function locateInTemplate(written: Json, segments: readonly string[]): string {
  let at: Json | undefined = written;
  let pointer = '';
  let isLiteral = false;
  for (const segment of segments) {
    if (!isLiteral && isPlainObject(at) && Object.hasOwn(at, '$literal')) {
      isLiteral = true;
      pointer += '/$literal';
      at = at.$literal;
    }
    pointer = extendPointer(pointer, segment);
    if (at === undefined || at === null || typeof at !== 'object') at = undefined;
    else at = isList(at) ? at[Number(segment)] : at[segment];
  }
  return pointer;
}
