import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { extendPointer } from '@capstan/core/json/values';
import { type ReactElement, type ReactNode, Suspense, useId } from 'react';
import type { SchemaPointerError } from '../api/schema-pointer-error.ts';
import { isMedia } from '../json/json-model.ts';
import { MediaView } from '../media/media-view.tsx';
import { latePart } from '../shared/late-part.tsx';
import { Button, fieldClass } from '../shared/parts.tsx';
import { JsonField } from './json-field.tsx';
import { takesMedia } from './media-model.ts';
import { createValue, type FormField, optionOf, propertiesOf, readNumber, toField } from './schema-model.ts';

const MediaField = latePart(() => import('./media-field.tsx'), 'MediaField');

export interface FieldViewProps {
  readonly name: string;
  readonly isNameless?: boolean;
  readonly isRequired?: boolean;
  readonly schema: JsonObject;
  readonly root: JsonObject;
  readonly value: Json | undefined;
  readonly pointer: string;
  readonly errors: readonly SchemaPointerError[];
  readonly onChange: (value: Json) => void;
}

/** One field of a value, by its schema. */
export function FieldView(props: FieldViewProps): ReactElement {
  const field = toField(props.schema, props.root);
  const own = props.errors.filter(({ pointer }) => pointer === props.pointer);
  const id = useId();
  return (
    <div className="flex flex-col gap-1 text-sm">
      {props.isNameless === true ? null : (
        <label htmlFor={id} className="font-medium">
          {props.name}
          {props.isRequired === true ? null : <span className="font-normal text-muted"> (optional)</span>}
        </label>
      )}
      {typeof field.schema.description === 'string' ? (
        <p className="text-xs text-muted">{field.schema.description}</p>
      ) : null}
      <Control {...props} field={field} id={id} />
      {own.map(({ message }) => (
        <p key={message} className="text-xs text-failed">
          {message}
        </p>
      ))}
    </div>
  );
}

type ControlProps = FieldViewProps & { readonly field: FormField; readonly id: string };

function Control(props: ControlProps): ReactNode {
  const { field, id, value, name, root, onChange } = props;
  const label = props.isNameless === true ? name : undefined;
  switch (field.kind) {
    case 'object':
      return <ObjectFields {...props} />;
    case 'array':
      return <ArrayFields {...props} />;
    case 'choice':
      return (
        <select
          id={id}
          aria-label={label}
          className={fieldClass}
          value={JSON.stringify(value)}
          onChange={({ target }) => onChange(JSON.parse(target.value) as Json)}
        >
          {field.choices.some((choice) => JSON.stringify(choice) === JSON.stringify(value)) ? null : (
            <option value="">{JSON.stringify(value) ?? ''}</option>
          )}
          {field.choices.map((choice) => (
            <option key={JSON.stringify(choice)} value={JSON.stringify(choice)}>
              {String(choice)}
            </option>
          ))}
        </select>
      );
    case 'oneOf':
      return <EitherField {...props} />;
    case 'boolean':
      return (
        <input
          id={id}
          aria-label={label}
          type="checkbox"
          className="size-4 self-start"
          checked={value === true}
          onChange={({ target }) => onChange(target.checked)}
        />
      );
    case 'number':
      return (
        <input
          id={id}
          aria-label={label}
          type="number"
          step={field.schema.type === 'integer' ? 1 : 'any'}
          className={`${fieldClass} w-44`}
          value={typeof value === 'number' || typeof value === 'string' ? value : ''}
          onChange={({ target }) => onChange(readNumber(target.value))}
        />
      );
    case 'text':
      return <TextField {...props} />;
    case 'json':
      return <JsonField label={name} value={value ?? createValue(field.schema, root)} onChange={onChange} />;
  }
}

function TextField({ id, name, isNameless, field, value, onChange }: ControlProps): ReactElement {
  const text =
    typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value);
  if (takesMedia(field.schema)) {
    return (
      <Suspense fallback={<input id={id} className={fieldClass} value={text} readOnly />}>
        <MediaField id={id} name={name} value={text} onChange={onChange} />
      </Suspense>
    );
  }
  return (
    <>
      <input
        id={id}
        aria-label={isNameless === true ? name : undefined}
        className={fieldClass}
        value={text}
        onChange={({ target }) => onChange(target.value)}
      />
      {isMedia(text) ? <MediaView reference={text} /> : null}
    </>
  );
}

function asObject(value: Json | undefined): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}

function ObjectFields({
  field,
  root,
  value,
  pointer,
  errors,
  onChange,
  isNameless,
}: ControlProps): ReactElement {
  const known = asObject(value);
  const properties = propertiesOf(field.schema);
  const others = Object.keys(known).filter((name) => !properties.some((property) => property.name === name));
  const put = (name: string, inner: Json | undefined): void => {
    const { [name]: _former, ...rest } = known;
    onChange(inner === undefined ? rest : { ...known, [name]: inner });
  };
  return (
    <div className={`flex flex-col gap-3 ${isNameless === true ? '' : 'border-l-2 border-line pl-3'}`}>
      {properties.map(({ name, schema, isRequired }) =>
        known[name] === undefined && !isRequired ? (
          <button
            key={name}
            type="button"
            className="self-start text-sm text-muted hover:text-accent"
            onClick={() => put(name, createValue(schema, root))}
          >
            + {name}
          </button>
        ) : (
          <FieldView
            key={name}
            name={name}
            isRequired={isRequired}
            schema={schema}
            root={root}
            value={known[name]}
            pointer={extendPointer(pointer, name)}
            errors={errors}
            onChange={(inner) => put(name, inner)}
          />
        ),
      )}
      {others.map((name) => (
        <div key={name} className="flex items-end gap-2">
          <div className="min-w-0 flex-1">
            <FieldView
              name={name}
              schema={{}}
              root={root}
              value={known[name]}
              pointer={extendPointer(pointer, name)}
              errors={errors}
              onChange={(inner) => put(name, inner)}
            />
          </div>
          <Button
            look="bare"
            icon="x"
            aria-label={`Take ${name} away`}
            onClick={() => put(name, undefined)}
          />
        </div>
      ))}
    </div>
  );
}

function ArrayFields({ field, root, value, pointer, errors, onChange, name }: ControlProps): ReactElement {
  const items: readonly Json[] = Array.isArray(value) ? value : [];
  const inner = asObject(field.schema.items as Json | undefined);
  return (
    <div className="flex flex-col gap-2 border-l-2 border-line pl-3">
      {items.map((item, index) => (
        <div key={index} className="flex items-start gap-2">
          <div className="min-w-0 flex-1">
            <FieldView
              name={`${name} ${index + 1}`}
              isNameless
              schema={inner}
              root={root}
              value={item}
              pointer={extendPointer(pointer, index)}
              errors={errors}
              onChange={(changed) => onChange(items.with(index, changed))}
            />
          </div>
          <Button
            look="bare"
            icon="x"
            aria-label={`Take item ${index + 1} away`}
            onClick={() => onChange(items.toSpliced(index, 1))}
          />
        </div>
      ))}
      <Button
        look="bare"
        icon="plus"
        className="self-start"
        onClick={() => onChange([...items, createValue(inner, root)])}
      >
        Add
      </Button>
    </div>
  );
}

function EitherField({
  field,
  root,
  value,
  id,
  pointer,
  errors,
  onChange,
  name,
  isNameless,
}: ControlProps): ReactElement {
  const chosen = optionOf(field.options, root, value);
  const option = field.options[chosen];
  return (
    <div className="flex flex-col gap-2">
      <select
        id={id}
        aria-label={isNameless === true ? `Kind of ${name}` : undefined}
        className={fieldClass}
        value={chosen}
        onChange={({ target }) =>
          onChange(createValue(field.options[Number(target.value)]?.schema ?? {}, root))
        }
      >
        {field.options.map(({ label }, index) => (
          <option key={`${label}${index}`} value={index}>
            {label}
          </option>
        ))}
      </select>
      {option === undefined ? null : (
        <FieldView
          name={`${name}, ${option.label}`}
          isNameless
          schema={option.schema}
          root={root}
          value={value}
          pointer={pointer}
          errors={errors}
          onChange={onChange}
        />
      )}
    </div>
  );
}
