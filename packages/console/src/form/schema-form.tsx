import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { type ReactElement, useState } from 'react';
import { FieldView } from './field-view.tsx';
import { JsonField } from './json-field.tsx';
import { type FormVerdict, standingErrors } from './standing-errors.ts';

export interface SchemaFormProps {
  readonly label: string;
  readonly schema: JsonObject;
  readonly value: Json;
  readonly verdict?: FormVerdict | undefined;
  readonly onChange: (value: Json) => void;
}

/** A value by the fields of its schema, or as JSON; each error is shown at its field. */
export function SchemaForm({ label, schema, value, verdict, onChange }: SchemaFormProps): ReactElement {
  const [chosen, setText] = useState<boolean | null>(null);
  const isText = chosen ?? (schema.properties === undefined && schema.type === undefined);
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
          errors={verdict === undefined ? [] : standingErrors(verdict, value)}
          onChange={onChange}
        />
      )}
    </section>
  );
}
