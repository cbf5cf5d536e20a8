import type { Json } from '@capstan/core/contracts/primitives';
import { type ReactElement, useState } from 'react';
import { MediaView } from '../media/media-view.tsx';
import { CopyButton } from '../shared/copy-button.tsx';
import { Icon } from '../shared/icon.tsx';
import { childrenOf, firstShown, isMedia, longText, summarize } from './json-model.ts';

export interface JsonTreeProps {
  readonly value: Json;
  /** Label for screen readers: `input`, `output`. */
  readonly name: string;
  /** JSON Pointers of corrected values. */
  readonly marked?: ReadonlySet<string>;
  /** It lists the outputs of items, which count from 1. */
  readonly isOfItems?: boolean;
}

const openDepth = 2;

/** A value as a tree that opens; media play in place. */
export function JsonTree({ value, name, marked, isOfItems = false }: JsonTreeProps): ReactElement {
  return (
    <div className="group/json relative min-w-0 font-mono text-xs leading-5">
      <div className="absolute right-0 top-0 opacity-0 focus-within:opacity-100 group-hover/json:opacity-100">
        <CopyButton text={JSON.stringify(value, null, 2)} name={`the ${name}`} />
      </div>
      <Branch value={value} pointer="" depth={0} marked={marked} isOfItems={isOfItems} />
    </div>
  );
}

interface BranchProps {
  readonly value: Json;
  readonly name?: string;
  readonly pointer: string;
  readonly depth: number;
  readonly marked: ReadonlySet<string> | undefined;
  readonly isOfItems?: boolean;
}

function Name({ name }: { readonly name: string | undefined }): ReactElement | null {
  return name === undefined ? null : <span className="text-muted">{name}: </span>;
}

function Branch({ value, name, pointer, depth, marked, isOfItems = false }: BranchProps): ReactElement {
  const children = childrenOf(value);
  const [isOpen, setOpen] = useState(depth < openDepth);
  const [most, setMost] = useState(firstShown);
  const mark = marked?.has(pointer) === true ? 'rounded bg-person-soft' : '';
  if (children === null || children.length === 0) {
    return (
      <div className={`${mark} min-w-0`}>
        <Name name={name} />
        <Leaf value={value} />
      </div>
    );
  }
  return (
    <div className={mark}>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className="inline-flex max-w-full items-center gap-0.5 text-left hover:bg-sunken"
      >
        <Icon name={isOpen ? 'chevron-down' : 'chevron-right'} size={12} className="text-muted" />
        <Name name={name} />
        <span className="truncate text-muted">{summarize(value)}</span>
      </button>
      {isOpen ? (
        <div className="ml-1.5 border-l border-line pl-3">
          {children.slice(0, most).map((child) => (
            <Branch
              key={child.name}
              {...child}
              {...(isOfItems ? { name: `item ${Number(child.name) + 1}` } : {})}
              pointer={`${pointer}/${child.name.replaceAll('~', '~0').replaceAll('/', '~1')}`}
              depth={depth + 1}
              marked={marked}
            />
          ))}
          {children.length > most ? (
            <button type="button" className="text-accent hover:underline" onClick={() => setMost(most * 4)}>
              {children.length - most} more
            </button>
          ) : null}
        </div>
      ) : null}
    </div>
  );
}

function Leaf({ value }: { readonly value: Json }): ReactElement {
  const [isWhole, setWhole] = useState(false);
  if (typeof value === 'string' && isMedia(value)) return <MediaView reference={value} />;
  if (typeof value !== 'string') return <span className="text-running">{JSON.stringify(value)}</span>;
  const isLong = value.length > longText && !isWhole;
  return (
    <span className="whitespace-pre-wrap break-words text-done">
      "{isLong ? value.slice(0, longText) : value}"
      {isLong ? (
        <button type="button" className="ml-1 text-accent hover:underline" onClick={() => setWhole(true)}>
          … {value.length - longText} more characters
        </button>
      ) : null}
    </span>
  );
}
