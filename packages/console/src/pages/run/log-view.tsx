/** Lines of a log with their filters, on the page of a run and in the drawer of a step. */
import { type ReactElement, useState } from 'react';
import { CopyButton } from '../../shared/copy-button.tsx';
import { FilterField } from '../../shared/filter-field.tsx';
import { Button, fieldClass } from '../../shared/parts.tsx';
import { saveText } from '../../shared/save-text.ts';
import { EventList, type EventListProps } from './event-list.tsx';
import { isOfKind, type LogKind, logKinds, matchesText, toText } from './log-model.ts';

interface LogViewProps extends Omit<EventListProps, 'wraps'> {
  /** Name of the downloaded file. */
  readonly name: string;
}

export function LogView({ events, name, ...list }: LogViewProps): ReactElement {
  const [text, setText] = useState('');
  const [kind, setKind] = useState<LogKind>('all');
  const [wraps, setWraps] = useState(false);
  const shown = events.filter((event) => isOfKind(event, kind) && matchesText(event, text));
  return (
    <>
      <div className="mb-2 flex flex-wrap items-center gap-x-3 gap-y-2">
        <FilterField label="Filter the log" value={text} onChange={setText} />
        <select
          aria-label="Kind of lines"
          className={fieldClass}
          value={kind}
          onChange={({ target }) => setKind(target.value as LogKind)}
        >
          {logKinds.map(([value, words]) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
        </select>
        <label className="flex items-center gap-1.5 text-sm">
          <input type="checkbox" checked={wraps} onChange={({ target }) => setWraps(target.checked)} />
          Wrap lines
        </label>
        <span className="figure text-sm text-muted">
          {shown.length} of {events.length} lines
        </span>
        <span className="ml-auto flex items-center gap-1">
          <CopyButton text={toText(shown)} name="the log" />
          <Button
            look="bare"
            icon="download"
            onClick={() => saveText(`${name}.log`, 'text/plain', toText(shown))}
          >
            Download
          </Button>
        </span>
      </div>
      <EventList events={shown} wraps={wraps} {...list} />
    </>
  );
}
