import type { KeyboardEvent, ReactElement, ReactNode } from 'react';
import { Icon } from './icon.tsx';
import type { IconName } from './icon-names.ts';

export interface Tab<Name extends string> {
  readonly name: Name;
  readonly label: ReactNode;
  readonly icon?: IconName;
}

export interface TabsProps<Name extends string> {
  readonly label: string;
  readonly tabs: readonly Tab<Name>[];
  readonly chosen: Name;
  readonly onChoose: (name: Name) => void;
}

/** Switches between views; arrow keys move between them. The choice is part of the address. */
export function Tabs<Name extends string>({ label, tabs, chosen, onChoose }: TabsProps<Name>): ReactElement {
  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const index = tabs.findIndex(({ name }) => name === chosen);
    const next = tabs[(index + step + tabs.length) % tabs.length];
    if (next === undefined) return;
    onChoose(next.name);
    event.currentTarget.querySelector<HTMLElement>(`[data-tab="${next.name}"]`)?.focus();
  };
  return (
    <div
      role="tablist"
      aria-label={label}
      className="scrolls -mb-px flex max-w-full gap-0.5 [scrollbar-width:none]"
      onKeyDown={onKeyDown}
    >
      {tabs.map(({ name, label: text, icon }) => (
        <button
          key={name}
          type="button"
          role="tab"
          data-tab={name}
          tabIndex={name === chosen ? 0 : -1}
          aria-selected={name === chosen}
          onClick={() => onChoose(name)}
          className="inline-flex h-9 items-center gap-1.5 whitespace-nowrap border-b-2 border-transparent px-2 text-sm text-muted hover:text-text aria-selected:border-accent aria-selected:font-medium aria-selected:text-text"
        >
          {icon === undefined ? null : <Icon name={icon} size={15} />}
          {text}
        </button>
      ))}
    </div>
  );
}
