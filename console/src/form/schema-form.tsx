import { type ReactElement, useState } from 'react';
import type { Json, JsonObject } from '../../../src/contracts/primitives.ts';
import type { SchemaPointerError } from '../api/schema-pointer-error.ts';
import { FieldView } from './field-view.tsx';
import { JsonField } from './json-field.tsx';

export interface SchemaFormProps {
  readonly label: string;
  readonly schema: JsonObject;
  readonly value: Json;
  readonly errors?: readonly SchemaPointerError[];
  readonly onChange: (value: Json) => void;
}

/** A value by the fields of its schema, or as JSON; each error stands at its field. */
export function SchemaForm({ label, schema, value, errors = [], onChange }: SchemaFormProps): ReactElement {
  const [isText, setText] = useState(schema.properties === undefined && schema.type === undefined);
  return (
    <section aria-label={label} className="flex flex-col gap-2">
      <div className="flex items-center justify-between">
        <h3 className="text-muted">{label}</h3>
        <button
          type="button"
          aria-pressed={isText}
          onClick={() => setText(!isText)}
          className="rounded px-1.5 font-mono text-xs text-muted hover:bg-sunken aria-pressed:bg-accent-soft aria-pressed:text-accent"
        >
          JSON
        </button>
      </div>
      {isText ? (
        <JsonField label={label} value={value} onChange={onChange} />
      ) : (
        <FieldView
          name={label}
          isNameless
          schema={schema}
          root={schema}
          value={value}
          pointer=""
          errors={errors}
          onChange={onChange}
        />
      )}
    </section>
  );
}
