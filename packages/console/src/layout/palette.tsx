import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type KeyboardEvent, type ReactElement, useId, useState } from 'react';
import { capabilitiesQuery } from '../api/capabilities.ts';
import { pipelinesQuery } from '../api/pipelines.ts';
import { runsQuery } from '../api/runs.ts';
import { Dialog } from '../shared/dialog.tsx';
import { Icon } from '../shared/icon.tsx';
import { fieldClass } from '../shared/parts.tsx';
import { useSettled } from '../shared/use-settled.ts';
import {
  entriesOfRun,
  findEntries,
  type PaletteAction,
  type PaletteEntry,
  placeOfMark,
  shortenId,
} from './palette-model.ts';
import { places, placesBeside } from './places.ts';

/** @param text is searched on the server, for runs that are not among the newest */
function useEntries(text: string): PaletteEntry[] {
  const pipelines = useQuery(pipelinesQuery()).data?.items ?? [];
  const capabilities = useQuery(capabilitiesQuery()).data?.items ?? [];
  const q = useSettled(text.trim(), 150);
  const runs =
    useQuery({ ...runsQuery(q === '' ? {} : { q }), placeholderData: (known) => known }).data?.items ?? [];
  return [
    ...[...places, ...placesBeside].map(({ to, name, icon }) => ({
      id: to,
      label: name,
      hint: 'page',
      icon,
      href: to,
    })),
    {
      id: 'new',
      label: 'New pipeline',
      hint: 'action',
      icon: 'plus',
      href: '/pipelines/new/edit?example=true',
    },
    ...pipelines.map(
      ({ pipeline }): PaletteEntry => ({
        id: `p:${pipeline}`,
        label: pipeline,
        hint: 'pipeline',
        icon: 'workflow',
        href: `/pipelines/${pipeline}`,
      }),
    ),
    ...pipelines.map(
      ({ pipeline }): PaletteEntry => ({
        id: `run:${pipeline}`,
        label: `Run ${pipeline} …`,
        hint: 'action',
        icon: 'play',
        href: `/pipelines/${pipeline}`,
        action: { kind: 'start', pipeline },
      }),
    ),
    ...capabilities.map(
      ({ name }): PaletteEntry => ({
        id: `c:${name}`,
        label: name,
        hint: 'capability',
        icon: 'boxes',
        href: `/capabilities/${name}`,
      }),
    ),
    ...runs.flatMap(entriesOfRun),
  ];
}

export interface PaletteProps {
  readonly onClose: () => void;
  readonly onAct: (action: PaletteAction) => void;
}

export function Palette({ onClose, onAct }: PaletteProps): ReactElement {
  const [text, setText] = useState('');
  const [marked, setMarked] = useState<string | null>(null);
  const navigate = useNavigate();
  const listId = useId();
  const found = findEntries(useEntries(text), text, marked);
  const chosen = placeOfMark(found, marked);
  const atMark = found[chosen]?.id ?? null;
  // The mark is set while drawing: Enter takes the entry that was visible.
  if (atMark !== marked) setMarked(atMark);
  const go = (entry: PaletteEntry | undefined): void => {
    if (entry === undefined) return;
    onClose();
    if (entry.action === undefined) void navigate({ href: entry.href });
    else onAct(entry.action);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setMarked(found.at((chosen + step) % Math.max(1, found.length))?.id ?? null);
    } else if (event.key === 'Enter') go(found[chosen]);
  };
  return (
    <Dialog title="Search or run a command" onClose={onClose}>
      <input
        role="combobox"
        aria-label="Search pages, ids and actions"
        aria-expanded="true"
        aria-controls={listId}
        aria-activedescendant={found[chosen] === undefined ? undefined : `${listId}-${chosen}`}
        className={`${fieldClass} h-9 w-full`}
        placeholder="A page, a pipeline, a run's id or label …"
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          setMarked(null);
        }}
        onKeyDown={onKeyDown}
        autoFocus
      />
      <div id={listId} role="listbox" aria-label="Found" className="mt-2">
        {found.map((entry, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field above
          <div
            key={entry.id}
            id={`${listId}-${index}`}
            role="option"
            tabIndex={-1}
            aria-label={`${entry.label} ${entry.hint}`}
            aria-selected={index === chosen}
            onClick={() => go(entry)}
            className="flex cursor-pointer items-center gap-2.5 rounded-md px-2.5 py-1.5 text-sm aria-selected:bg-accent-soft"
          >
            <Icon name={entry.icon} className="text-muted" />
            <span className="shrink-0 whitespace-nowrap" title={entry.label}>
              {shortenId(entry.label)}
            </span>
            <span className="ml-auto min-w-0 truncate text-xs text-muted" title={entry.hint}>
              {entry.hint}
            </span>
          </div>
        ))}
      </div>
      {found.length === 0 ? (
        <p className="px-2 py-3 text-sm text-muted">No results for “{text.trim()}”</p>
      ) : null}
    </Dialog>
  );
}
