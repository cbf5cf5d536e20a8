import type { ReactElement } from 'react';
import { Dialog } from '../shared/dialog.tsx';
import { places } from './places.ts';

const everywhere: readonly (readonly [string, string])[] = [
  ['Ctrl K', 'search or run a command'],
  ['/', 'filter the list'],
  ['?', 'this list'],
  ...places.map(({ key, name }) => [`g ${key}`, `go to ${name}`] as const),
];
const reviews: readonly (readonly [string, string])[] = [
  ['j  k', 'next, previous'],
  ['c', 'claim or release'],
  ['a', 'approve the first proposal; in the list: decide the chosen ones'],
  ['e', 'edit'],
  ['x', 'reject'],
  ['s  A', 'in the list: choose this one, choose all'],
];

function KeyTable({ name, keys }: { readonly name: string; readonly keys: typeof everywhere }): ReactElement {
  return (
    <section className="mb-4">
      <h3 className="mb-1.5 text-muted">{name}</h3>
      <dl className="grid grid-cols-[6rem_1fr] gap-y-1 text-sm">
        {keys.map(([key, does]) => (
          <div key={key} className="contents">
            <dt>
              <kbd className="rounded border border-line bg-sunken px-1.5 font-mono text-xs">{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

export function KeyHelp({ onClose }: { readonly onClose: () => void }): ReactElement {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <KeyTable name="Everywhere" keys={everywhere} />
      <KeyTable name="Reviews" keys={reviews} />
    </Dialog>
  );
}
